// SPDX-License-Identifier: BSD-3-Clause
//
// Alternative: another structure in the place of the matcher's table. This base class has the common parts: the order
// of the steps, the counts, the statistics. Each structure adds how it stores and finds entries.
//
// The matcher passes every call on, under the engine's lock: one thread at a time. factory.hpp creates alternatives.
//
// They always count. So each pays for a virtual call and two histograms; the table, which users get by default, has
// neither.
//
//   Matcher ──▶ Alternative ◁── plain list, hash bins, peer lists, arrays, vector, fuzzy
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/matching/match_session.hpp"
#include "comm/matching/statistics.hpp"

namespace canele::comm::matching {

/// Envelope of a message that arrives.
struct Envelope {
  std::uint64_t tag;
  std::uint32_t session;
  std::int32_t source;
};

/// Arguments of a receive or a probe.
struct Wanted {
  std::uint64_t tag, mask;
  std::uint32_t session;
  std::int32_t source;
};

/// Compares in full. A receive's mask lies beyond its first cache line: it is read only where it matters.
inline bool fits(const PostedNode& receive, const Envelope& message) noexcept {
  if (receive.session != message.session) return false;
  if (receive.source != rank_any && receive.source != message.source) return false;
  return receive.tag == message.tag || receive.match_class == static_cast<std::uint8_t>(MatchClass::any_tag) ||
         receive.match_class == static_cast<std::uint8_t>(MatchClass::any_any) ||
         (receive.match_class == static_cast<std::uint8_t>(MatchClass::masked) &&
          ((receive.tag ^ message.tag) & receive.mask) == 0);
}
inline bool fits(const UnexpectedNode& message, const Wanted& wanted) noexcept {
  return ((message.tag ^ wanted.tag) & wanted.mask) == 0 && message.session == wanted.session &&
         (wanted.source == rank_any || wanted.source == message.source);
}

inline bool fits(const PostedNode& receive, const UnexpectedNode& message) noexcept {
  return fits(receive, Envelope{message.tag, message.session, message.source});
}

/// Session and source as one word; the mask excludes a source that does not matter.
inline std::uint64_t who_of(std::uint32_t session, std::int32_t source) noexcept {
  return std::uint64_t{session} << 32 | static_cast<std::uint32_t>(source);
}
inline std::uint64_t who_mask_of(std::int32_t source) noexcept {
  return source == rank_any ? ~std::uint64_t{0} << 32 : ~std::uint64_t{0};
}

class Alternative {
 public:
  virtual ~Alternative() = default;

  // As in matcher.hpp.
  UnexpectedNode* post(MatchSession& session, PostedNode& receive);
  PostedNode* arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept;
  PostedNode* peek(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept;
  std::uint64_t take_post_order() noexcept { return ++post_order_; }
  void store(MatchSession& session, UnexpectedNode& message);
  UnexpectedNode* find(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask) noexcept;
  void take(MatchSession& session, UnexpectedNode& message) noexcept;
  void cancel(MatchSession& session, PostedNode& receive) noexcept;
  bool is_next(const PostedNode& receive) const noexcept;

  /// Calls visit(context, receive) for every posted receive.
  virtual void each(void (*visit)(void*, PostedNode&), void* context) const = 0;
  /// Memory of the structure, without the nodes.
  virtual std::size_t bytes() const noexcept = 0;
  const Statistics& statistics() const noexcept { return statistics_; }

 protected:
  // The node is complete, and its post order is younger than all before. May throw std::bad_alloc; then nothing has
  // changed.
  virtual void append(MatchSession& session, PostedNode& receive) = 0;
  virtual void append(MatchSession& session, UnexpectedNode& message) = 0;
  virtual void remove(MatchSession& session, PostedNode& receive) noexcept = 0;
  virtual void remove(MatchSession& session, UnexpectedNode& message) noexcept = 0;
  /// Return the oldest receive that the message fits, or the oldest message for a receive, without removing it. Add the
  /// cost of the search to `cost`.
  virtual PostedNode* search(const Envelope& message, Tally& cost) const noexcept = 0;
  virtual UnexpectedNode* search(const MatchSession& session, const Wanted& wanted, Tally& cost) const noexcept = 0;

 private:
  UnexpectedNode* find_and_note(MatchSession& session, const Wanted& wanted) noexcept;

  std::uint64_t post_order_ = 0;
  Statistics statistics_;
};

}  // namespace canele::comm::matching
