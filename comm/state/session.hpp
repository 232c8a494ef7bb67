// SPDX-License-Identifier: BSD-3-Clause
//
// Session: a name space for tags, and the table that finds it by label.
//
// Called by the thread that holds the engine's lock.
//
// A session exists as soon as a peer has mentioned its label. That may be before it is opened here, in which case its
// messages wait as unexpected, or after it was closed here. When nothing refers to a session any more, its memory is
// reused for the next one. This memory never goes back to the system, so a stale handle still points to a Session,
// although perhaps to a different one.
//
//   label ──▶ Session ◀── number (local, in every match key)     never used twice
//                ▲   └──▶ wire (16 bits, while it is open)       given back at close; an opening raises its epoch
//                └── peer.names, by a number that the peer chose      announced once per peer, before first use
//
// A session is needed while it is open or keeps messages. It is also needed while a peer refers to it by a number, or a
// buffered send uses its `wire`.
//
// Rejected: telling peers that a number was given back. Envelopes and announcements to a peer arrive in one order. The
// next announcement of the number therefore replaces the old one, and no earlier message can be misattributed.
#pragma once

#include <canele/post.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/matching/matcher.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::comm {

class Context;
struct Message;

class Session {
 public:
  Context* context = nullptr;
  std::string label;
  std::uint32_t number = 0;  ///< local name, shared with no other session, ever.
  std::uint32_t epoch = 0;   ///< of `wire`, raised at each opening: older epochs are announced anew.
  std::uint32_t wire = 0;    ///< 16 bits: index in packets sent; while open or `holds` != 0.
  bool open = false;
  bool posts_fast = false;  ///< open, and no address can be device memory: posts may skip their checks
  bool order_across_tags = false;
  bool has_wire = false;
  std::uint64_t pending = 0;   ///< requests posted and not finalized.
  std::uint32_t holds = 0;     ///< buffered sends not ended; they outlive the closing.
  std::uint32_t mentions = 0;  ///< numbers by which peers refer to this session.
  std::int32_t maker = -1;     ///< the peer that mentioned it first, until it is opened here.
  std::size_t place = 0;       ///< index in the table.
  Session* barrier = nullptr;  ///< internal session for this session's barriers, opened at the first barrier.
  std::shared_ptr<void> active_messages;  ///< api::ActiveMessages, made at first use.
  std::atomic<Session*> active{nullptr};  ///< internal session of the active messages, read without the lock.
  std::vector<std::uint64_t> served;      ///< in such an internal session: ids that have a handler.
  canele_error_fn on_error = nullptr;     ///< see canele_session_on_error
  void* on_error_argument = nullptr;
  MatchSession match;
  std::shared_ptr<void> collectives;  ///< of an internal session: the collectives::Group that it belongs to
  void (*unmatched)(Session&, Message&) = nullptr;  ///< called for each message stored unmatched; may reject it
  /// Returns whether `unmatched` is to have this message although its sender has no credit. nullptr: none.
  bool (*takes_blocked)(Session&, std::int32_t source, std::uint64_t tag) = nullptr;

  bool serves(std::uint64_t tag) const { return std::find(served.begin(), served.end(), tag) != served.end(); }
  /// Returns whether canele_finalize itself receives the messages of this session. See
  /// collectives/discard_receiver.hpp, and the last barrier.
  bool discarded_at_end() const { return label.starts_with("group:") || label == "canele.finalize"; }
  bool needed() const { return open || has_wire || pending + holds + mentions + match.unexpected != 0; }
};

class SessionTable {
 public:
  static constexpr std::size_t most_open = 65'535;       ///< the wire index has 16 bits
  static constexpr std::size_t most_mentioned = 16'384;  ///< by one peer, of sessions that are not open here

  bool devices_present = false;  ///< as Context::has_devices, for sessions that are opened later

  /// Returns the session with this label, or nullptr.
  Session* find(std::string_view label) const {
    const auto found = by_label_.find(label);
    return found != by_label_.end() ? found->second : nullptr;
  }
  /// Returns the session with this label; creates it if there is none.
  Session& find_or_make(Context& context, std::string_view label);
  /// Opens the session under a wire number. Returns false if all wire numbers are taken.
  bool open(Session& session);
  /// Closes the session. It may be gone afterwards.
  void close(Session& session);
  /// Releases the session if nothing needs it any more; called after a reason to keep it has ended. It may be gone
  /// afterwards.
  void release_if_unused(Session& session) {
    if (!session.open && session.has_wire && session.holds == 0) give_back_wire(session);
    if (!session.needed()) recycle(session);
  }

  /// The existing sessions, in no order.
  Session& at(std::size_t index) { return *live_[index]; }
  std::size_t size() const { return live_.size(); }
  /// Calls visit(Session&) for each session. The visited session may be gone afterwards.
  template <typename Visit>
  void each(Visit visit) CANELE_UNDER_LOCK {
    for (std::size_t i = live_.size(); i-- > 0;) {
      if (i < live_.size()) visit(*live_[i]);
    }
  }
  /// Returns the highest number of sessions that existed at once. The table holds memory for that many.
  std::size_t capacity() const { return all_.size(); }
  /// Returns the highest number of wire numbers that were in use at once.
  std::size_t wires() const { return epochs_.size(); }
  /// Returns how many sessions exist only because this peer has mentioned them.
  std::size_t made_by(std::int32_t peer) const;
  /// Records that this session exists only because `peer` has mentioned it.
  void note_maker(Session& session, std::int32_t peer);

  /// Returns the number of requests posted and not finalized.
  std::uint64_t pending() const {
    std::uint64_t sum = 0;
    for (const Session* one : live_) sum += one->pending;
    return sum;
  }
  /// Returns whether a receive waits, or a session takes messages without one.
  bool wants_messages() const {
    return std::any_of(live_.begin(), live_.end(),
                       [](const Session* one) { return one->match.posted != 0 || one->takes_blocked != nullptr; });
  }

 private:
  void give_back_wire(Session& session);
  void recycle(Session& session);

  std::vector<std::unique_ptr<Session>> all_;
  std::vector<Session*> live_, free_;
  std::vector<std::uint32_t> epochs_;      ///< by wire number: epoch of its last opening
  std::vector<std::uint16_t> free_wires_;  ///< the last one is used next, so that tables stay short
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::string_view, Session*> by_label_;  ///< the keys point into the sessions' labels
  std::unordered_map<std::int32_t, std::size_t> made_by_;
};

/// A handle of the C ABI is the address of its object.
inline Session& session_of(canele_session_t* s) { return *reinterpret_cast<Session*>(s); }
inline canele_session_t* public_of(Session& s) { return reinterpret_cast<canele_session_t*>(&s); }

}  // namespace canele::comm
