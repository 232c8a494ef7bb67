// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher: decides which receive gets which message, in constant time for all four classes of receives without a
// mask.
//
// A message goes to the oldest receive that fits it; a receive gets the oldest message that fits it. Used by the engine
// under its lock: one thread at a time.
//
// An unexpected message is indexed by the exact key only. The arrival order, and the indexes for (any, tag) and
// (source, any) receives, are built on demand, at a session's first receive or probe that needs them. They are
// maintained from then on. So a session without wildcards (StarPU) never pays for them.
//
// Exact receives stay out of the table as long as a session has few of them. Its recent receives are in the order of
// posting, which is mostly the order in which they match. A request and its answer never touch the table, nor does a
// stream of up to 64 receives at a time.
//
// The engine may be configured to use another structure (CANELE_EXPERT_MATCHER, alternatives/): then every call is
// passed on to it. Calls of the table itself are not virtual.
//
//    class        receive            key               structure
//    exact        (source, tag)      tag, source       recent receives (posted), then table (posted and unexpected)
//    any_source   (any, tag)         tag               table
//    any_tag      (source, any)      source            table
//    any_any      (any, any)         -                 list per session; unexpected: the arrival order
//    masked       tag & mask         -                 list per session, scanned up to the best order of the others
//
// Rejected: separate hash tables for posted and unexpected in each class (twice the cold lines); one wildcard list
// (linear).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "comm/matching/keyed_queues.hpp"
#include "comm/matching/match_session.hpp"
#include "comm/matching/node.hpp"
#include "comm/matching/statistics.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

/// How the tables of the classes index nodes; see KeyedQueues.
struct FiledExact {
  static MatchLinks& links(MatchNode& node) noexcept { return node.links; }
  static MatchKey key(const MatchNode& node) noexcept { return MatchKey(node); }
};
struct FiledAnySource {
  static MatchLinks& links(MatchNode& node) noexcept {
    return node.posted ? node.links : static_cast<UnexpectedNode&>(node).secondary.entry()->any_source;
  }
  static MatchKey key(const MatchNode& node) noexcept { return {node.tag, node.session, rank_any}; }
};
/// For a posted receive, or for all messages of one source (arrival_index.hpp).
struct FiledAnyTag {
  static MatchLinks& links(MatchNode& node) noexcept { return node.links; }
  static MatchKey key(const MatchNode& node) noexcept { return {0, node.session, node.source}; }
};

namespace matching {
class Alternative;
}

/// Counting: matching::NotCounted in the engine. matching::Counted in tests and benchmarks, where the table counts as
/// the alternatives do.
template <typename Counting>
class BasicMatcher {
 public:
  /// other: the structure that replaces the table; nullptr: none.
  BasicMatcher(std::uint64_t seed, std::unique_ptr<matching::Alternative> other);
  explicit BasicMatcher(std::uint64_t seed);
  ~BasicMatcher();

  /// Posts a new receive, with tag, mask and source set by the caller. Returns the unexpected message that it matches,
  /// already removed. Otherwise queues the receive and returns nullptr.
  UnexpectedNode* post(MatchSession& session, PostedNode& receive);

  /// Returns true if post() has a fast path for such a receive, which must be exact. If no message waits in the
  /// session, it is queue_named(), otherwise take_exact().
  bool has_fast_path(std::uint64_t mask, std::int32_t source) const noexcept {
    return classify(source, mask) == MatchClass::exact && other_ == nullptr && !Counting::on;
  }
  /// Returns the matching message, already removed; or nullptr, and the receive must be queued.
  [[gnu::noinline]] UnexpectedNode* take_exact(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
    UnexpectedNode* const message = take_by_key({tag, session.id, source});
    if (message != nullptr) forget_message(session, *message);
    return message;
  }
  /// Completes post() for a receive without a waiting message.
  void queue(MatchSession& session, PostedNode& receive);

  /// Queues an exact receive, inline. Writes all fields of its node.
  [[gnu::always_inline]] void queue_named(MatchSession& session, PostedNode& receive, std::uint64_t tag,
                                          std::uint64_t mask, std::int32_t source) {
    assert(session.unexpected == 0);
    receive.tag = tag;
    receive.mask = mask;
    receive.source = source;
    queue_exact(session, receive, tag, source);
  }

  /// Handles the arrival of a message. Returns the matching receive, already removed; or nullptr.
  [[gnu::always_inline]] PostedNode* arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
    // Inline: a call would cost as much as the code below.
    if (!Counting::on && !session.recent_receives.empty() && session.posted_inexact == 0) [[likely]] {
      if (PostedNode* const oldest = session.recent_receives.take_oldest(tag, source); oldest != nullptr) [[likely]] {
        forget_receive(session, *oldest);
        return oldest;
      }
    }
    return session.posted == 0 && other_ == nullptr ? nullptr : arrive_in_tables(session, tag, source);
  }

  /// Prefetch hints for a message that will arrive. prefetch_hint() prefetches the line where the search begins, and
  /// returns its position (0: none). Some time later, guess() returns the node that the search may find. It does not
  /// read that node, which may or may not match. If everything fits the cache, is_large() tells that the hints are not
  /// worthwhile.
  bool is_large() const noexcept { return exact_.keys() >= large_table; }
  bool is_huge() const noexcept { return exact_.keys() >= huge_table; }  ///< too large for the next cache level as well
  /// Returns true if hints for receives are worthwhile. For plain receives the processor overlaps the reads by itself,
  /// so their limit is higher.
  bool is_large_for_posts() const noexcept { return exact_.keys() > large_for_posts_; }
  std::uint64_t prefetch_hint(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept {
    return other_ == nullptr ? exact_.prefetch_hint({tag, session.id, source}) : 0;
  }
  const MatchNode* guess(std::uint64_t hint) const noexcept { return exact_.guess(hint); }

  /// Prefetch hints for a receive that will be posted, in steps. Each step prefetches what the step before it has led
  /// to, and should come some time after it. The first step prefetches the bucket, and returns its position; 0: nothing
  /// can be prefetched.
  [[gnu::always_inline]] std::uint64_t prefetch_post(const MatchSession& session, std::uint64_t tag, std::uint64_t mask,
                                                     std::int32_t source) const noexcept {
    if (classify(source, mask) != MatchClass::exact) [[unlikely]]
      return prefetch_inexact_post(session, tag, mask);
    // The message of an exact receive has to be removed from the other table as well.
    if (session.indexes_any_source) any_source_.prefetch_hint({tag, session.id, rank_any});
    return exact_.prefetch_hint({tag, session.id, source}) | under_exact_key;
  }
  /// Prefetches the message there. `where` may be outdated: only nodes that are in the table now are touched.
  [[gnu::always_inline]] void prefetch_message(std::uint64_t where) const noexcept {
    const MatchNode* const node = guess_of_post(where);
    if (node == nullptr) return;
    prefetch_to_write(node);
    prefetch_to_read(static_cast<const UnexpectedNode*>(node) + 1);  // the data of a message, if it is one
  }
  /// Prefetches the message's index entry, or its block in the only order.
  void prefetch_secondary(std::uint64_t where) const noexcept;
  /// Prefetches the blocks to which its index entry points.
  void prefetch_order_slots(std::uint64_t where) const noexcept;
  /// The last of these steps that is useful in at least one session.
  enum class PostSteps : std::uint8_t { to_message, to_secondary, to_order_slots };
  PostSteps post_steps() const noexcept { return post_steps_; }

  /// Returns the receive that a message would match, without removing it.
  PostedNode* peek(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept;
  /// Returns an order between those of all receives posted before and all posted later.
  std::uint64_t take_post_order() noexcept;

  /// Stores a message for which arrive() found no receive (tag and source set by the caller).
  void store(MatchSession& session, UnexpectedNode& message);

  /// Returns the message that a receive with these arguments would match, without removing it.
  UnexpectedNode* find(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask);

  /// Removes an unexpected message.
  void take(MatchSession& session, UnexpectedNode& message) noexcept;
  /// Removes a posted receive.
  void cancel(MatchSession& session, PostedNode& receive) noexcept;

  /// Returns true if the next message for this posted receive's tag and source will match it, whatever is posted later.
  /// May return false although it will.
  bool is_next(const MatchSession& session, const PostedNode& receive) const noexcept;

  /// Calls visit(PostedNode&) for every posted receive in the tables; nothing may change meanwhile.
  template <typename Visit>
  void each_in_tables(Visit visit) const {
    if (other_ != nullptr) return each_of_other([](void* v, PostedNode& n) { (*static_cast<Visit*>(v))(n); }, &visit);
    const auto posted = [&](MatchNode& node) {
      if (node.posted) visit(static_cast<PostedNode&>(node));
      return true;
    };
    exact_.each_while(posted);
    any_tag_.each_while(posted);
    any_source_.each_while(posted);
  }

  /// Calls visit(PostedNode&) for the receives of one session that are in no table; nothing may change meanwhile.
  template <typename Visit>
  static void each_in_session(const MatchSession& session, Visit visit) {
    session.recent_receives.each(visit);
    for (const NodeFifo* list : {&session.any_any, &session.masked}) {
      list->each([&](MatchNode& node) { visit(static_cast<PostedNode&>(node)); });
    }
  }

  /// Calls visit(UnexpectedNode&) for every unexpected message of a session in the table, in no particular order.
  /// Nothing may change meanwhile. Another structure shows none.
  template <typename Visit>
  void each_unexpected(const MatchSession& session, Visit visit) const {
    exact_.each_while([&](MatchNode& node) {
      if (!node.posted && node.session == session.id) visit(static_cast<UnexpectedNode&>(node));
      return true;
    });
  }
  /// Returns the unexpected message of a session that arrived first; nullptr if there is none. May examine all of them.
  UnexpectedNode* oldest(MatchSession& session) noexcept;
  /// Removes all unexpected messages of a session, in no particular order. Calls visit(UnexpectedNode&) for each after
  /// its removal; visit may destroy the message. Needs no memory.
  template <typename Visit>
  void drain(MatchSession& session, Visit visit) {
    std::array<UnexpectedNode*, 256> some;
    std::size_t count = 0;
    do {
      count = take_some(session, some.data(), some.size());
      for (std::size_t i = 0; i < count; ++i) visit(*some[i]);
    } while (count == some.size());
  }

  /// Returns false if another structure replaces the table.
  bool is_table() const noexcept { return other_ == nullptr; }
  /// Memory of the structure, without the nodes.
  std::size_t bytes() const noexcept;
  /// Returns the statistics. Those of the table are zero unless it counts.
  const matching::Statistics& statistics() const noexcept;

 private:
  static constexpr std::size_t large_table = 1024, huge_table = 8192;
  class Noted;
  PostedNode* arrive_in_tables(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept;
  /// Accounts for a receive that was removed from the recent ones, a table or a list.
  static void forget_receive(MatchSession& session, PostedNode& receive) noexcept {
    receive.queued = false;
    --session.posted;
  }
  void prefetch_behind_first(const ArrivalOrder& order) const noexcept;
  /// A flag in the result of prefetch_post(): it refers to the table of exact keys. No bucket and no fingerprint
  /// depends on that bit of a hash.
  static constexpr std::uint64_t under_exact_key = std::uint64_t{1} << 48;
  [[gnu::cold]] std::uint64_t prefetch_inexact_post(const MatchSession& session, std::uint64_t tag,
                                                    std::uint64_t mask) const noexcept;
  [[gnu::always_inline]] const MatchNode* guess_of_post(std::uint64_t where) const noexcept {
    if ((where & under_exact_key) != 0) [[likely]]
      return exact_.guess(where);
    return where != 0 ? any_source_.guess(where) : nullptr;
  }
  const UnexpectedNode* guess_message(std::uint64_t where) const noexcept {
    const MatchNode* const node = guess_of_post(where);
    return node != nullptr && !node->posted ? static_cast<const UnexpectedNode*>(node) : nullptr;
  }
  /// Removes and returns the oldest message under the key of an exact receive in the table of exact keys; nullptr if
  /// there is none.
  [[gnu::always_inline]] UnexpectedNode* take_by_key(const MatchKey& key) noexcept {
    typename KeyedQueues<FiledExact, Counting>::Place place;
    MatchNode* const node = exact_.find(key, place);
    if (node == nullptr || node->posted) return nullptr;
    exact_.remove_first(*node, place);
    return static_cast<UnexpectedNode*>(node);
  }
  /// Accounts for a message that was removed from the table of exact keys, and removes it from the secondary indexes.
  [[gnu::always_inline]] void forget_message(MatchSession& session, UnexpectedNode& message) noexcept {
    if (session.has_secondary) [[unlikely]]
      forget_secondary(session, message);
    message.queued = false;
    --session.unexpected;
  }
  void each_of_other(void (*visit)(void*, PostedNode&), void* context) const;
  matching::Tally tally() const noexcept;
  UnexpectedNode* find_in_tables(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask);
  void cancel_in_tables(MatchSession& session, PostedNode& receive) noexcept;
  UnexpectedNode* receive_now(MatchSession& session, const PostedNode& receive);
  void forget_secondary(MatchSession& session, UnexpectedNode& message) noexcept;
  void take_from_tables(MatchSession& session, UnexpectedNode& message) noexcept;
  void count_compared() const noexcept {
    if constexpr (Counting::on) ++lists_.probes, ++lists_.attempts, ++lists_.lines;
  }
  void file_exact(MatchSession& session, PostedNode& receive);
  /// Filters the result of a search by exact key, which may be a message.
  static PostedNode* posted_only(MatchNode* node) noexcept {
    return node != nullptr && node->posted ? static_cast<PostedNode*>(node) : nullptr;
  }
  PostedNode* find_recent(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept {
    if constexpr (Counting::on) {
      return session.recent_receives.template find<Counting>(tag, source, lists_);
    } else {
      matching::Tally nothing;
      return session.recent_receives.template find<Counting>(tag, source, nothing);
    }
  }
  /// Returns the oldest exact receive for such a message.
  PostedNode* find_exact(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept;
  void post_inexact(MatchSession& session, PostedNode& receive, MatchClass match_class);
  void queue_inline(MatchSession& session, PostedNode& receive);
  void assign_post_order(const MatchSession& session, PostedNode& receive, MatchClass match_class) noexcept {
    receive.session = session.id;
    receive.posted = true;
    receive.match_class = static_cast<std::uint8_t>(match_class);
    receive.post_order = ++post_order_;
  }
  /// Tag and source are the node's.
  [[gnu::always_inline]] void queue_exact(MatchSession& session, PostedNode& receive, std::uint64_t tag,
                                          std::int32_t source) {
    assign_post_order(session, receive, MatchClass::exact);
    if (session.filed != 0 || CANELE_BUGGIFY(window_without_room) ||
        !session.recent_receives.append(receive, tag, source)) [[unlikely]]
      file_exact(session, receive);
    receive.queued = true;
    ++session.posted;
  }
  MatchNode* oldest_fit(const MatchSession& session, std::uint64_t tag, std::int32_t source,
                        MatchNode* exact) const noexcept;
  void build_secondary(MatchSession& session, bool any_source, std::size_t orders);
  void file_by_source(MatchSession& session, UnexpectedNode& message);
  void forget_in_source(MatchSession& session, UnexpectedNode& message) noexcept;
  void store_secondary(MatchSession& session, UnexpectedNode& message);
  std::vector<UnexpectedNode*> in_order(const MatchSession& session) const;
  ArrivalIndex& arrival_index_of(MatchSession& session);
  std::size_t take_some(MatchSession& session, UnexpectedNode** out, std::size_t most) noexcept;
  void index_any_source(MatchSession& session);
  void index_any_tag(MatchSession& session);

  std::unique_ptr<matching::Alternative> other_;
  KeyedQueues<FiledExact, Counting> exact_;
  KeyedQueues<FiledAnySource, Counting> any_source_;
  KeyedQueues<FiledAnyTag, Counting> any_tag_;
  std::uint64_t post_order_ = 0;
  PostSteps post_steps_ = PostSteps::to_message;
  std::size_t large_for_posts_ = huge_table;  ///< follows from post_steps_; read for each receive
  struct Nothing {};
  [[no_unique_address]] mutable std::conditional_t<Counting::on, matching::Tally, Nothing> lists_;  ///< walks
  [[no_unique_address]] mutable std::conditional_t<Counting::on, matching::Statistics, Nothing> statistics_;
};

extern template class BasicMatcher<matching::NotCounted>;
extern template class BasicMatcher<matching::Counted>;
using Matcher = BasicMatcher<matching::NotCounted>;
using CountingMatcher = BasicMatcher<matching::Counted>;

}  // namespace canele::comm
