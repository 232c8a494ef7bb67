// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher: which receive gets which message, in constant time for all four classes of receives.
//
// Who: the engine, under its lock. Order: a message goes to the oldest receive that fits it; a receive gets the
//     oldest message that fits it.
// Threads: under the engine's lock.
// Surprise: an unexpected message is filed under the exact key only. The indexes for (any, tag) and (source, any)
//     receives are built at a session's first such receive and kept up from then on, so that a session without
//     wildcards (StarPU) never pays for them. And the only receive of a session is not filed at all until a second one
//     is posted: a request and its answer never touch the table.
//
//   class        receive            key               structure
//   exact        (source, tag)      tag, source       table (posted and unexpected share it)
//   any_source   (any, tag)         tag               table
//   any_tag      (source, any)      source            table
//   any_any      (any, any)         -                 list per session; unexpected: the arrival list
//   masked       tag & mask         -                 list per session, scanned up to the best stamp of the others
//
// Rejected: one hash per class for posted and unexpected each (twice the cold lines), one wildcard list (linear).
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/matching/keyed_queues.hpp"
#include "comm/matching/node.hpp"

namespace canele::comm {

enum class MatchClass : std::uint8_t { exact, any_source, any_tag, any_any, masked };

/// The matcher's state of one session; owned by the session.
struct MatchSession {
  /// A FIFO of posted receives through MatchNode::links.
  struct PostedList {
    MatchNode* first = nullptr;
    MatchNode* last = nullptr;
  };
  std::uint32_t id = 0;
  bool indexes_any_source = false, indexes_any_tag = false;
  std::size_t posted_any_source = 0, posted_any_tag = 0;
  std::size_t posted_inexact = 0;  ///< all classes but exact
  PostedNode* only = nullptr;      ///< an exact receive that is the only one posted and not in the table
  PostedList any_any, masked;
  UnexpectedNode* first_arrival = nullptr;
  UnexpectedNode* last_arrival = nullptr;
  std::size_t posted = 0, unexpected = 0;
};

/// How the tables of the classes file nodes; see KeyedQueues.
struct FiledExact {
  static MatchLinks& links(MatchNode& node) noexcept { return node.links; }
  static MatchKey key(const MatchNode& node) noexcept { return {node.tag, node.session, node.source}; }
};
struct FiledAnySource {
  static MatchLinks& links(MatchNode& node) noexcept {
    return node.posted ? node.links : static_cast<UnexpectedNode&>(node).any_source_links;
  }
  static MatchKey key(const MatchNode& node) noexcept { return {node.tag, node.session, rank_any}; }
};
struct FiledAnyTag {
  static MatchLinks& links(MatchNode& node) noexcept {
    return node.posted ? node.links : static_cast<UnexpectedNode&>(node).any_tag_links;
  }
  static MatchKey key(const MatchNode& node) noexcept { return {0, node.session, node.source}; }
};

class Matcher {
 public:
  explicit Matcher(std::uint64_t seed);

  /// A new receive (tag, mask, source filled; session set here). Returns the unexpected message that it takes, already
  /// taken out; or queues the receive and returns nullptr.
  UnexpectedNode* post(MatchSession& session, PostedNode& receive);

  /// A message arrives: the receive that takes it, already taken out, or nullptr.
  PostedNode* arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept;

  /// Keeps a message that arrive() found nobody for (tag and source filled).
  void store(MatchSession& session, UnexpectedNode& message);

  /// The message that a receive with these arguments would get, left where it is.
  UnexpectedNode* find(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask);

  /// Takes an unexpected message out.
  void take(MatchSession& session, UnexpectedNode& message) noexcept;
  /// Takes a posted receive out.
  void cancel(MatchSession& session, PostedNode& receive) noexcept;

  /// Will the next message for this posted receive's tag and source be given to it, whatever else is posted later? May
  /// say no though it is so.
  bool is_next(const MatchSession& session, const PostedNode& receive) const noexcept {
    if (receive.match_class != static_cast<std::uint8_t>(MatchClass::exact) || session.posted_inexact != 0)
      return false;
    return session.only == &receive || exact_.find({receive.tag, session.id, receive.source}) == &receive;
  }

  static MatchClass classify(std::int32_t source, std::uint64_t mask) noexcept;

  /// visit(PostedNode&) for every posted receive in the tables; nothing may change meanwhile.
  template <typename Visit>
  void each_in_tables(Visit visit) const {
    const auto posted = [&](MatchNode& node) {
      if (node.posted) visit(static_cast<PostedNode&>(node));
    };
    exact_.each(posted);
    any_tag_.each(posted);
    any_source_.each(posted);
  }

  /// The same for the receives of one session that are in no table.
  template <typename Visit>
  static void each_in_session(const MatchSession& session, Visit visit) {
    if (session.only != nullptr) visit(*session.only);
    for (const MatchSession::PostedList* list : {&session.any_any, &session.masked}) {
      for (MatchNode* node = list->first; node != nullptr; node = node->links.next) {
        visit(static_cast<PostedNode&>(*node));
      }
    }
  }

 private:
  void file_only(MatchSession& session);
  void post_inexact(MatchSession& session, PostedNode& receive, MatchClass match_class);
  PostedNode* arrive_inexact(MatchSession& session, std::uint64_t tag, std::int32_t source, MatchNode* exact) noexcept;
  void index_any_source(MatchSession& session);
  void index_any_tag(MatchSession& session);

  KeyedQueues<FiledExact> exact_;
  KeyedQueues<FiledAnySource> any_source_;
  KeyedQueues<FiledAnyTag> any_tag_;
  std::uint64_t stamp_ = 0;
};

}  // namespace canele::comm
