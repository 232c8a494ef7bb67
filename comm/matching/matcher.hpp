// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher: which receive gets which message, in constant time for all four classes of receives.
//
// Who: the engine, under its lock. Order: a message goes to the oldest receive that fits it; a receive gets the
//     oldest message that fits it.
// Threads: under the engine's lock.
// Surprise: an unexpected message is filed under the exact key only. The order of arrival, and the indexes for (any,
//     tag) and (source, any) receives, are each built at a session's first receive or probe that needs it, and kept up
//     from then on, so that a session without wildcards (StarPU) never pays for them. And exact receives stay out of
//     the table as long as a session has few of them: its window has them in the order in which they were posted, which
//     is the order in which they are met, mostly. A request and its answer never touch the table, nor does a stream of
//     64 at a time.
//
// The engine may be told to use another structure (CANELE_MATCHER, alternatives/): then every call is passed on to it.
// The table itself is called without a virtual call.
//
//   class        receive            key               structure
//   exact        (source, tag)      tag, source       window per session (posted), then table (posted and unexpected)
//   any_source   (any, tag)         tag               table
//   any_tag      (source, any)      source            table
//   any_any      (any, any)         -                 list per session; unexpected: the arrival list
//   masked       tag & mask         -                 list per session, scanned up to the best stamp of the others
//
// Rejected: one hash per class for posted and unexpected each (twice the cold lines), one wildcard list (linear).
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
#include "ltask/mark.hpp"

namespace canele::comm {

/// How the tables of the classes file nodes; see KeyedQueues.
struct FiledExact {
  static MatchLinks& links(MatchNode& node) noexcept { return node.links; }
  static MatchKey key(const MatchNode& node) noexcept { return MatchKey(node); }
};
struct FiledAnySource {
  static MatchLinks& links(MatchNode& node) noexcept {
    return node.posted ? node.links : static_cast<UnexpectedNode&>(node).elsewhere.listing()->any_source;
  }
  static MatchKey key(const MatchNode& node) noexcept { return {node.tag, node.session, rank_any}; }
};
/// A posted receive, or all messages of one source (arrivals.hpp).
struct FiledAnyTag {
  static MatchLinks& links(MatchNode& node) noexcept { return node.links; }
  static MatchKey key(const MatchNode& node) noexcept { return {0, node.session, node.source}; }
};

namespace matching {
class Alternative;
}

/// Counting: matching::NotCounted in the engine; matching::Counted in tests and benchmarks, where the table counts as
/// the alternatives do.
template <typename Counting>
class BasicMatcher {
 public:
  /// other: what takes the table's place; nullptr: nothing does.
  BasicMatcher(std::uint64_t seed, std::unique_ptr<matching::Alternative> other);
  explicit BasicMatcher(std::uint64_t seed);
  ~BasicMatcher();

  /// A new receive (tag, mask, source filled; session set here). Returns the unexpected message that it takes, already
  /// taken out; or queues the receive and returns nullptr.
  UnexpectedNode* post(MatchSession& session, PostedNode& receive);

  /// Is there a short way of post()? For exact receives; where no message waits in the session, it is queue_named(),
  /// else take_exact().
  bool has_short_way(std::uint64_t mask, std::int32_t source) const noexcept {
    return classify(source, mask) == MatchClass::exact && other_ == nullptr && !Counting::on;
  }
  /// The message that it takes, already taken out, or nullptr: it must be queued.
  [[gnu::noinline]] UnexpectedNode* take_exact(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
    UnexpectedNode* const message = take_by_key({tag, session.id, source});
    if (message != nullptr) forget_message(session, *message);
    return message;
  }
  /// The rest of post() for a receive that no message waits for.
  void queue(MatchSession& session, PostedNode& receive);

  /// In line. Writes all of its node.
  [[gnu::always_inline]] void queue_named(MatchSession& session, PostedNode& receive, std::uint64_t tag,
                                          std::uint64_t mask, std::int32_t source) {
    assert(session.unexpected == 0);
    receive.tag = tag;
    receive.mask = mask;
    receive.source = source;
    queue_exact(session, receive, tag, source);
  }

  /// A message arrives: the receive that takes it, already taken out, or nullptr.
  [[gnu::always_inline]] PostedNode* arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
    // In line: to call what follows costs as much.
    if (!Counting::on && !session.window.empty() && session.posted_inexact == 0) [[likely]] {
      if (PostedNode* const oldest = session.window.take_oldest(tag, source); oldest != nullptr) [[likely]] {
        forget_receive(session, *oldest);
        return oldest;
      }
    }
    return session.posted == 0 && other_ == nullptr ? nullptr : arrive_in_tables(session, tag, source);
  }

  /// Hints for a message that will come: sends for the line that the search begins with, and tells where that is (0:
  /// nowhere); and, some time after that, which node it may well find (its memory is not looked at: it may fit or not).
  /// Where all fits the cache, is_large() says that it is not worth it.
  bool is_large() const noexcept { return exact_.keys() >= large_table; }
  bool is_huge() const noexcept { return exact_.keys() >= huge_table; }  ///< nor the next cache
  /// Is it worth it to begin with hints for receives? What plain ones read the processor overlaps by itself for longer.
  bool is_large_for_posts() const noexcept { return exact_.keys() > large_for_posts_; }
  std::uint64_t foresee(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept {
    return other_ == nullptr ? exact_.foresee({tag, session.id, source}) : 0;
  }
  const MatchNode* guess(std::uint64_t foreseen) const noexcept { return exact_.guess(foreseen); }

  /// Hints for a receive that will be posted, in steps: each sends for what the one before it has led to, and so should
  /// come some time after it. The first sends for the bucket, and says where that is; 0: nothing can be sent for.
  [[gnu::always_inline]] std::uint64_t foresee_post(const MatchSession& session, std::uint64_t tag, std::uint64_t mask,
                                                    std::int32_t source) const noexcept {
    if (classify(source, mask) != MatchClass::exact) [[unlikely]]
      return foresee_inexact_post(session, tag, mask);
    // What an exact receive takes has to be taken out of the other table, too.
    if (session.indexes_any_source) any_source_.foresee({tag, session.id, rank_any});
    return exact_.foresee({tag, session.id, source}) | under_exact_key;
  }
  /// The message there. `where` may be of long ago: nothing is looked at but what is in the table now.
  [[gnu::always_inline]] void foresee_message(std::uint64_t where) const noexcept {
    const MatchNode* const node = guess_of_post(where);
    if (node == nullptr) return;
    prefetch_to_write(node);
    prefetch_to_read(static_cast<const UnexpectedNode*>(node) + 1);  // the bytes of a message, if it is one
  }
  /// Its listing, or its place in the only order.
  void foresee_elsewhere(std::uint64_t where) const noexcept;
  /// The places in orders that its listing has.
  void foresee_places(std::uint64_t where) const noexcept;
  /// The last of these steps that is of use in some session.
  enum class PostSteps : std::uint8_t { to_message, to_elsewhere, to_places };
  PostSteps post_steps() const noexcept { return post_steps_; }

  /// The receive that a message would get, left where it is.
  PostedNode* peek(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept;
  /// A stamp between those of all receives posted before and all posted later.
  std::uint64_t take_stamp() noexcept;

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
  bool is_next(const MatchSession& session, const PostedNode& receive) const noexcept;

  /// visit(PostedNode&) for every posted receive in the tables; nothing may change meanwhile.
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

  /// The same for the receives of one session that are in no table.
  template <typename Visit>
  static void each_in_session(const MatchSession& session, Visit visit) {
    session.window.each(visit);
    for (const NodeFifo* list : {&session.any_any, &session.masked}) {
      list->each([&](MatchNode& node) { visit(static_cast<PostedNode&>(node)); });
    }
  }

  /// visit(UnexpectedNode&) for every unexpected message of a session in the table, in no order; nothing may change
  /// meanwhile. Another structure shows none.
  template <typename Visit>
  void each_unexpected(const MatchSession& session, Visit visit) const {
    exact_.each_while([&](MatchNode& node) {
      if (!node.posted && node.session == session.id) visit(static_cast<UnexpectedNode&>(node));
      return true;
    });
  }
  /// The unexpected message of a session that came first; nullptr if there is none. May look at all there are.
  UnexpectedNode* oldest(MatchSession& session) noexcept;
  /// Takes all unexpected messages of a session out, in no order; visit(UnexpectedNode&) for each that is out, and may
  /// end it. Needs no memory.
  template <typename Visit>
  void drain(MatchSession& session, Visit visit) {
    std::array<UnexpectedNode*, 256> some;
    std::size_t count = 0;
    do {
      count = take_some(session, some.data(), some.size());
      for (std::size_t i = 0; i < count; ++i) visit(*some[i]);
    } while (count == some.size());
  }

  /// Or has something else taken its place?
  bool is_table() const noexcept { return other_ == nullptr; }
  /// Memory of the structure, without the nodes.
  std::size_t bytes() const noexcept;
  /// The table's are zero unless it counts.
  const matching::Statistics& statistics() const noexcept;

 private:
  static constexpr std::size_t large_table = 1024, huge_table = 8192;
  class Noted;
  PostedNode* arrive_in_tables(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept;
  /// A receive that is no longer in the window, a table or a list is not queued.
  static void forget_receive(MatchSession& session, PostedNode& receive) noexcept {
    receive.queued = false;
    --session.posted;
  }
  void foresee_behind_first(const ArrivalOrder& order) const noexcept;
  /// In what foresee_post() says: the table of exact keys is meant. No bucket and no mark depends on that bit of a
  /// hash.
  static constexpr std::uint64_t under_exact_key = std::uint64_t{1} << 48;
  [[gnu::cold]] std::uint64_t foresee_inexact_post(const MatchSession& session, std::uint64_t tag,
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
  /// The oldest message under the key of an exact receive, out of the table of exact keys; nullptr if there is none.
  [[gnu::always_inline]] UnexpectedNode* take_by_key(const MatchKey& key) noexcept {
    typename KeyedQueues<FiledExact, Counting>::Place place;
    MatchNode* const node = exact_.find(key, place);
    if (node == nullptr || node->posted) return nullptr;
    exact_.remove_first(*node, place);
    return static_cast<UnexpectedNode*>(node);
  }
  /// A message that is no longer in the table of exact keys leaves the rest.
  [[gnu::always_inline]] void forget_message(MatchSession& session, UnexpectedNode& message) noexcept {
    if (session.files_elsewhere) [[unlikely]]
      forget_elsewhere(session, message);
    message.queued = false;
    --session.unexpected;
  }
  void each_of_other(void (*visit)(void*, PostedNode&), void* context) const;
  matching::Tally tally() const noexcept;
  UnexpectedNode* find_in_tables(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask);
  void cancel_in_tables(MatchSession& session, PostedNode& receive) noexcept;
  UnexpectedNode* receive_now(MatchSession& session, const PostedNode& receive);
  void forget_elsewhere(MatchSession& session, UnexpectedNode& message) noexcept;
  void take_from_tables(MatchSession& session, UnexpectedNode& message) noexcept;
  void count_compared() const noexcept {
    if constexpr (Counting::on) ++lists_.probes, ++lists_.attempts, ++lists_.lines;
  }
  void file_exact(MatchSession& session, PostedNode& receive);
  /// What is found under an exact key may be a message.
  static PostedNode* posted_only(MatchNode* node) noexcept {
    return node != nullptr && node->posted ? static_cast<PostedNode*>(node) : nullptr;
  }
  PostedNode* find_in_window(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept {
    if constexpr (Counting::on) {
      return session.window.template find<Counting>(tag, source, lists_);
    } else {
      matching::Tally nothing;
      return session.window.template find<Counting>(tag, source, nothing);
    }
  }
  /// The oldest exact receive for such a message.
  PostedNode* find_exact(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept;
  void post_inexact(MatchSession& session, PostedNode& receive, MatchClass match_class);
  void queue_in_line(MatchSession& session, PostedNode& receive);
  void stamp(const MatchSession& session, PostedNode& receive, MatchClass match_class) noexcept {
    receive.session = session.id;
    receive.posted = true;
    receive.match_class = static_cast<std::uint8_t>(match_class);
    receive.stamp = ++stamp_;
  }
  /// Tag and source are the node's.
  [[gnu::always_inline]] void queue_exact(MatchSession& session, PostedNode& receive, std::uint64_t tag,
                                          std::int32_t source) {
    stamp(session, receive, MatchClass::exact);
    if (session.filed != 0 || CANELE_BUGGIFY(window_without_room) || !session.window.append(receive, tag, source))
        [[unlikely]]
      file_exact(session, receive);
    receive.queued = true;
    ++session.posted;
  }
  MatchNode* oldest_fit(const MatchSession& session, std::uint64_t tag, std::int32_t source,
                        MatchNode* exact) const noexcept;
  void file_elsewhere(MatchSession& session, bool any_source, std::size_t orders);
  void file_by_source(MatchSession& session, UnexpectedNode& message);
  void forget_in_source(MatchSession& session, UnexpectedNode& message) noexcept;
  void store_elsewhere(MatchSession& session, UnexpectedNode& message);
  std::vector<UnexpectedNode*> in_order(const MatchSession& session) const;
  Arrivals& arrivals_of(MatchSession& session);
  std::size_t take_some(MatchSession& session, UnexpectedNode** out, std::size_t most) noexcept;
  void index_any_source(MatchSession& session);
  void index_any_tag(MatchSession& session);

  std::unique_ptr<matching::Alternative> other_;
  KeyedQueues<FiledExact, Counting> exact_;
  KeyedQueues<FiledAnySource, Counting> any_source_;
  KeyedQueues<FiledAnyTag, Counting> any_tag_;
  std::uint64_t stamp_ = 0;
  PostSteps post_steps_ = PostSteps::to_message;
  std::size_t large_for_posts_ = huge_table;  ///< follows from post_steps_; each receive asks
  struct Nothing {};
  [[no_unique_address]] mutable std::conditional_t<Counting::on, matching::Tally, Nothing> lists_;  ///< walked
  [[no_unique_address]] mutable std::conditional_t<Counting::on, matching::Statistics, Nothing> statistics_;
};

extern template class BasicMatcher<matching::NotCounted>;
extern template class BasicMatcher<matching::Counted>;
using Matcher = BasicMatcher<matching::NotCounted>;
using CountingMatcher = BasicMatcher<matching::Counted>;

}  // namespace canele::comm
