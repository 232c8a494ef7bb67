// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher. See matcher.hpp for the classes. An arrival compares at most five post orders, those of the heads of the
// classes in use, and the masked receives before the best of these.
#include "comm/matching/matcher.hpp"

#include <algorithm>

#include "comm/matching/alternative.hpp"
#include "comm/matching/prefetch.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {
namespace {

std::size_t sources_of(const std::vector<UnexpectedNode*>& messages) {
  std::vector<std::int32_t> all;
  all.reserve(messages.size());
  for (const UnexpectedNode* message : messages) all.push_back(message->source);
  std::sort(all.begin(), all.end());
  return static_cast<std::size_t>(std::unique(all.begin(), all.end()) - all.begin());
}

}  // namespace

/// Records the cost of one operation, from construction to destruction. No code unless counting is on.
template <typename Counting>
class BasicMatcher<Counting>::Noted {
 public:
  Noted(const BasicMatcher& matcher, const MatchSession& session, bool searches)
      : matcher_(matcher), session_(session), searches_(searches) {
    if constexpr (Counting::on) before_ = matcher.tally(), posted_ = session.posted, unexpected_ = session.unexpected;
  }
  ~Noted() {
    if constexpr (Counting::on) {
      matching::Statistics& statistics = matcher_.statistics_;
      statistics.note(matcher_.tally() - before_, searches_);
      if (session_.posted != posted_) statistics.posted.add(session_.posted);
      if (session_.unexpected != unexpected_) statistics.unexpected.add(session_.unexpected);
    }
  }
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;

 private:
  const BasicMatcher& matcher_;
  const MatchSession& session_;
  bool searches_;
  matching::Tally before_;
  std::size_t posted_ = 0, unexpected_ = 0;
};

template <typename Counting>
BasicMatcher<Counting>::BasicMatcher(std::uint64_t seed, std::unique_ptr<matching::Alternative> other)
    : other_(std::move(other)), exact_(seed), any_source_(seed + 2), any_tag_(seed + 4) {}

template <typename Counting>
BasicMatcher<Counting>::BasicMatcher(std::uint64_t seed) : BasicMatcher(seed, nullptr) {}

template <typename Counting>
BasicMatcher<Counting>::~BasicMatcher() = default;

/// Shared by queue() and post().
template <typename Counting>
[[gnu::always_inline]] inline void BasicMatcher<Counting>::queue_inline(MatchSession& session, PostedNode& receive) {
  const MatchClass match_class = classify(receive.source, receive.mask);
  if (match_class == MatchClass::exact) [[likely]]
    return queue_exact(session, receive, receive.tag, receive.source);
  assign_post_order(session, receive, match_class);
  post_inexact(session, receive, match_class);
  receive.queued = true;
  ++session.posted;
}

template <typename Counting>
UnexpectedNode* BasicMatcher<Counting>::post(MatchSession& session, PostedNode& receive) {
  assert(!receive.queued);
  if (other_ != nullptr) [[unlikely]]
    return other_->post(session, receive);
  const Noted noted(*this, session, session.unexpected != 0);
  if (session.unexpected != 0) {
    if (UnexpectedNode* message = receive_now(session, receive); message != nullptr) return message;
  }
  queue_inline(session, receive);
  return nullptr;
}

template <typename Counting>
void BasicMatcher<Counting>::queue(MatchSession& session, PostedNode& receive) {
  queue_inline(session, receive);
}

/// Removes and returns the message that a new receive matches. The exact class needs only one table access for both.
template <typename Counting>
[[gnu::always_inline]] inline UnexpectedNode* BasicMatcher<Counting>::receive_now(MatchSession& session,
                                                                                  const PostedNode& receive) {
  if (classify(receive.source, receive.mask) != MatchClass::exact) [[unlikely]] {
    UnexpectedNode* message = find_in_tables(session, receive.source, receive.tag, receive.mask);
    if (message != nullptr) take_from_tables(session, *message);
    return message;
  }
  return take_exact(session, receive.tag, receive.source);
}

/// Queues a receive in the table. The recent receives have no room, or had none before, and older receives are still
/// in the table. Recent receives move to the table gradually, the youngest first, each in front of its queue. Soon none
/// is left, and they are no longer searched in vain.
template <typename Counting>
[[gnu::noinline]] void BasicMatcher<Counting>::file_exact(MatchSession& session, PostedNode& receive) {
  constexpr int moved_with_each = 2;
  for (int i = 0; i < moved_with_each && !session.recent_receives.empty(); ++i) {
    CANELE_COVER(receive_moves_to_table);
    PostedNode& youngest = session.recent_receives.youngest();
    exact_.push_first(youngest, MatchKey(youngest));
    session.recent_receives.remove(youngest);
    youngest.slot = PostedNode::no_slot;
    ++session.filed;
  }
  receive.slot = PostedNode::no_slot;
  exact_.push(receive, MatchKey(receive));
  ++session.filed;
}

template <typename Counting>
void BasicMatcher<Counting>::post_inexact(MatchSession& session, PostedNode& receive, MatchClass match_class) {
  switch (match_class) {
    case MatchClass::exact:
      break;  // see post()
    case MatchClass::any_source:
      if (!session.indexes_any_source) index_any_source(session);
      any_source_.push(receive);
      ++session.posted_any_source;
      break;
    case MatchClass::any_tag:
      if (!session.indexes_any_tag) index_any_tag(session);
      any_tag_.push(receive);
      ++session.posted_any_tag;
      break;
    case MatchClass::any_any:
      session.any_any.append(receive);
      break;
    case MatchClass::masked:
      session.masked.append(receive);
      break;
  }
  ++session.posted_inexact;
}

template <typename Counting>
PostedNode* BasicMatcher<Counting>::arrive_in_tables(MatchSession& session, std::uint64_t tag,
                                                     std::int32_t source) noexcept {
  if (other_ != nullptr) [[unlikely]]
    return other_->arrive(session, tag, source);
  const Noted noted(*this, session, true);
  PostedNode* exact = find_recent(session, tag, source);
  typename KeyedQueues<FiledExact, Counting>::Place place;
  if (exact == nullptr && session.filed != 0) exact = posted_only(exact_.find({tag, session.id, source}, place));
  if (session.posted_inexact != 0) {
    auto* const receive = static_cast<PostedNode*>(oldest_fit(session, tag, source, exact));
    if (receive != nullptr) cancel_in_tables(session, *receive);
    return receive;
  }
  if (exact == nullptr) return nullptr;
  if (exact->slot != PostedNode::no_slot) {
    CANELE_COVER(receive_met_out_of_turn);
    session.recent_receives.remove(*exact);
  } else {
    exact_.remove_first(*exact, place);
    --session.filed;
  }
  forget_receive(session, *exact);
  return exact;
}

/// Returns the oldest of `exact` (if any) and the fitting receives of the other classes.
template <typename Counting>
MatchNode* BasicMatcher<Counting>::oldest_fit(const MatchSession& session, std::uint64_t tag, std::int32_t source,
                                              MatchNode* exact) const noexcept {
  MatchNode* best = exact;
  const auto consider = [&](MatchNode* candidate) {
    if (candidate != nullptr && candidate->posted && (best == nullptr || candidate->post_order < best->post_order))
      best = candidate;
  };
  if (session.posted_any_source != 0) consider(any_source_.find({tag, session.id, rank_any}));
  if (session.posted_any_tag != 0) consider(any_tag_.find({0, session.id, source}));
  consider(session.any_any.first);
  if (session.any_any.first != nullptr) count_compared();
  for (MatchNode* node = session.masked.first; node != nullptr; node = node->links.next) {
    if (best != nullptr && node->post_order > best->post_order) break;
    count_compared();
    const auto& receive = static_cast<PostedNode&>(*node);
    if (((tag ^ receive.tag) & receive.mask) == 0 && (receive.source == rank_any || receive.source == source)) {
      best = node;
      break;
    }
  }
  return best;
}

/// Receives that take the first of a list, or walk along it, get no prefetch.
template <typename Counting>
std::uint64_t BasicMatcher<Counting>::prefetch_inexact_post(const MatchSession& session, std::uint64_t tag,
                                                            std::uint64_t mask) const noexcept {
  if (classify(rank_any, mask) != MatchClass::any_source) return 0;
  return any_source_.prefetch_hint({tag, session.id, rank_any}) & ~under_exact_key;
}

template <typename Counting>
void BasicMatcher<Counting>::prefetch_secondary(std::uint64_t where) const noexcept {
  const UnexpectedNode* const message = guess_message(where);
  if (message == nullptr) return;
  const IndexEntry* const entry = message->secondary.entry();
  prefetch_to_write(entry != nullptr ? static_cast<const void*>(entry) : message->secondary.order_slot.block());
  if ((where & under_exact_key) == 0) exact_.prefetch_hint(MatchKey(*message));
}

template <typename Counting>
void BasicMatcher<Counting>::prefetch_order_slots(std::uint64_t where) const noexcept {
  const UnexpectedNode* const message = guess_message(where);
  const IndexEntry* const entry = message != nullptr ? message->secondary.entry() : nullptr;
  if (entry == nullptr) return;
  prefetch_to_write(entry->from_source.block());
  prefetch_to_write(entry->in_session.block());
}

/// After the first message, the program will take the following ones. Prefetches the message eight positions on, and
/// the index entry and bucket of the one four positions on, whose line was prefetched some receives ago.
template <typename Counting>
void BasicMatcher<Counting>::prefetch_behind_first(const ArrivalOrder& order) const noexcept {
  if (!is_large()) return;
  if (const UnexpectedNode* const far = order.behind_first(8); far != nullptr) {
    prefetch_to_write(far);
    prefetch_to_read(far + 1);
  }
  if (const UnexpectedNode* const near = order.behind_first(4); near != nullptr) {
    prefetch_to_write(near->secondary.entry());
    exact_.prefetch_hint(MatchKey(*near));
  }
}

template <typename Counting>
PostedNode* BasicMatcher<Counting>::find_exact(const MatchSession& session, std::uint64_t tag,
                                               std::int32_t source) const noexcept {
  PostedNode* const older = find_recent(session, tag, source);
  return older != nullptr || session.filed == 0 ? older : posted_only(exact_.find({tag, session.id, source}));
}

template <typename Counting>
PostedNode* BasicMatcher<Counting>::peek(const MatchSession& session, std::uint64_t tag,
                                         std::int32_t source) const noexcept {
  if (other_ != nullptr) [[unlikely]]
    return other_->peek(session, tag, source);
  if (session.posted == 0) return nullptr;
  PostedNode* const exact = find_exact(session, tag, source);
  return static_cast<PostedNode*>(session.posted_inexact != 0 ? oldest_fit(session, tag, source, exact) : exact);
}

template <typename Counting>
std::uint64_t BasicMatcher<Counting>::take_post_order() noexcept {
  return other_ != nullptr ? other_->take_post_order() : ++post_order_;
}

template <typename Counting>
void BasicMatcher<Counting>::cancel(MatchSession& session, PostedNode& receive) noexcept {
  assert(receive.queued && receive.posted);
  if (other_ != nullptr) [[unlikely]]
    return other_->cancel(session, receive);
  const Noted noted(*this, session, false);
  cancel_in_tables(session, receive);
}

template <typename Counting>
void BasicMatcher<Counting>::cancel_in_tables(MatchSession& session, PostedNode& receive) noexcept {
  switch (static_cast<MatchClass>(receive.match_class)) {
    case MatchClass::exact:
      if (receive.slot != PostedNode::no_slot) {
        session.recent_receives.remove(receive);
      } else {
        exact_.remove(receive);
        --session.filed;
      }
      break;
    case MatchClass::any_source:
      any_source_.remove(receive);
      --session.posted_any_source;
      break;
    case MatchClass::any_tag:
      any_tag_.remove(receive);
      --session.posted_any_tag;
      break;
    case MatchClass::any_any:
      session.any_any.unlink(receive);
      break;
    case MatchClass::masked:
      session.masked.unlink(receive);
      break;
  }
  session.posted_inexact -= static_cast<MatchClass>(receive.match_class) != MatchClass::exact;
  forget_receive(session, receive);
}

template <typename Counting>
void BasicMatcher<Counting>::store(MatchSession& session, UnexpectedNode& message) {
  assert(!message.queued);
  if (other_ != nullptr) [[unlikely]]
    return other_->store(session, message);
  const Noted noted(*this, session, false);
  message.session = session.id;
  message.posted = false;
  message.post_order = ++post_order_;
  if (session.has_secondary) store_secondary(session, message);
  message.queued = true;
  exact_.push(message);
  ++session.unexpected;
}

template <typename Counting>
void BasicMatcher<Counting>::store_secondary(MatchSession& session, UnexpectedNode& message) {
  session.arrival_index.reserve(session.has_entries ? 1 : 0, 2, 2);
  if (session.has_entries) session.arrival_index.add_entry(message, ArrivalOrder::Of::session);
  if (session.orders_by_arrival) session.arrival_index.append(message);
  if (session.indexes_any_source) any_source_.push(message);
  if (session.indexes_any_tag) file_by_source(session, message);
}

template <typename Counting>
void BasicMatcher<Counting>::file_by_source(MatchSession& session, UnexpectedNode& message) {
  MatchNode* node = any_tag_.find(FiledAnyTag::key(message));
  assert((node == nullptr || !node->posted) && "a receive for it would have taken it");
  if (node == nullptr) {
    node = &session.arrival_index.new_source();
    node->session = session.id;
    node->source = message.source;
    any_tag_.push(*node);
  }
  session.arrival_index.append(static_cast<SourceOrder&>(*node), message);
}

template <typename Counting>
void BasicMatcher<Counting>::forget_in_source(MatchSession& session, UnexpectedNode& message) noexcept {
  SourceOrder& source = session.arrival_index.remove_from_source(message);
  if (!source.empty()) return;
  any_tag_.remove(source);
  session.arrival_index.end_source(source);
}

template <typename Counting>
void BasicMatcher<Counting>::take(MatchSession& session, UnexpectedNode& message) noexcept {
  assert(message.queued && !message.posted);
  if (other_ != nullptr) [[unlikely]]
    return other_->take(session, message);
  const Noted noted(*this, session, false);
  take_from_tables(session, message);
}

template <typename Counting>
void BasicMatcher<Counting>::take_from_tables(MatchSession& session, UnexpectedNode& message) noexcept {
  exact_.remove(message);
  forget_message(session, message);
}

/// A message leaves all but the table of exact keys.
template <typename Counting>
void BasicMatcher<Counting>::forget_secondary(MatchSession& session, UnexpectedNode& message) noexcept {
  if (session.indexes_any_source) any_source_.remove(message);
  if (session.indexes_any_tag) forget_in_source(session, message);
  if (session.orders_by_arrival) session.arrival_index.remove(message);
  if (session.has_entries) session.arrival_index.remove_entry(message);
}

template <typename Counting>
UnexpectedNode* BasicMatcher<Counting>::find(MatchSession& session, std::int32_t source, std::uint64_t tag,
                                             std::uint64_t mask) {
  if (other_ != nullptr) [[unlikely]]
    return other_->find(session, source, tag, mask);
  const Noted noted(*this, session, session.unexpected != 0);
  return find_in_tables(session, source, tag, mask);
}

template <typename Counting>
UnexpectedNode* BasicMatcher<Counting>::find_in_tables(MatchSession& session, std::int32_t source, std::uint64_t tag,
                                                       std::uint64_t mask) {
  MatchNode* node = nullptr;
  switch (classify(source, mask)) {
    case MatchClass::exact:
      node = exact_.find({tag, session.id, source});
      break;
    case MatchClass::any_source:
      if (!session.indexes_any_source) index_any_source(session);
      node = any_source_.find({tag, session.id, rank_any});
      break;
    case MatchClass::any_tag:
      if (!session.indexes_any_tag) index_any_tag(session);
      if (node = any_tag_.find({0, session.id, source}); node != nullptr && !node->posted) {
        const auto& of_source = *static_cast<SourceOrder*>(node);
        prefetch_behind_first(of_source);
        return of_source.first();
      }
      break;
    case MatchClass::any_any:
      node = arrival_index_of(session).first();
      prefetch_behind_first(session.arrival_index.order());
      count_compared();
      break;
    case MatchClass::masked:
      for (UnexpectedNode* message = arrival_index_of(session).first(); message != nullptr;
           message = ArrivalIndex::after(*message)) {
        count_compared();
        if (matching::fits(*message, {tag, mask, session.id, source})) return message;
      }
      break;
  }
  return node != nullptr && !node->posted ? static_cast<UnexpectedNode*>(node) : nullptr;
}

template <typename Counting>
bool BasicMatcher<Counting>::is_next(const MatchSession& session, const PostedNode& receive) const noexcept {
  if (other_ != nullptr) [[unlikely]]
    return other_->is_next(receive);
  if (receive.match_class != static_cast<std::uint8_t>(MatchClass::exact) || session.posted_inexact != 0) return false;
  return find_exact(session, receive.tag, receive.source) == &receive;
}

/// Prepares the messages that are there for another index: any source, or that many `orders`. Gives them index entries
/// when they are in more than one order.
template <typename Counting>
void BasicMatcher<Counting>::build_secondary(MatchSession& session, bool any_source, std::size_t orders) {
  const bool in_orders = !any_source || session.orders_by_arrival || session.indexes_any_tag;
  const bool list = (any_source || session.has_secondary) && !session.has_entries;
  session.arrival_index.reserve(list ? session.unexpected : 0, session.unexpected, orders);
  if (list) {
    const auto had = session.orders_by_arrival ? ArrivalOrder::Of::session : ArrivalOrder::Of::source;
    each_unexpected(session, [&](UnexpectedNode& message) { session.arrival_index.add_entry(message, had); });
    session.has_entries = true;
  }
  const bool to_order_slots = session.has_entries && in_orders;
  post_steps_ = std::max(post_steps_, to_order_slots ? PostSteps::to_order_slots : PostSteps::to_secondary);
  large_for_posts_ = large_table;
  session.has_secondary = true;
}

/// Returns the messages that are there, sorted by their order of arrival.
template <typename Counting>
std::vector<UnexpectedNode*> BasicMatcher<Counting>::in_order(const MatchSession& session) const {
  std::vector<UnexpectedNode*> there;
  there.reserve(session.unexpected);
  each_unexpected(session, [&](UnexpectedNode& message) { there.push_back(&message); });
  std::sort(there.begin(), there.end(),
            [](const UnexpectedNode* a, const UnexpectedNode* b) { return a->post_order < b->post_order; });
  return there;
}

template <typename Counting>
ArrivalIndex& BasicMatcher<Counting>::arrival_index_of(MatchSession& session) {
  if (session.orders_by_arrival) return session.arrival_index;
  const std::vector<UnexpectedNode*> there = in_order(session);
  build_secondary(session, false, 1);
  for (UnexpectedNode* message : there) session.arrival_index.append(*message);
  session.orders_by_arrival = true;
  return session.arrival_index;
}

template <typename Counting>
void BasicMatcher<Counting>::index_any_source(MatchSession& session) {
  const std::vector<UnexpectedNode*> there = in_order(session);
  build_secondary(session, true, 0);
  session.indexes_any_source = true;
  for (UnexpectedNode* message : there) any_source_.push(*message);
}

template <typename Counting>
void BasicMatcher<Counting>::index_any_tag(MatchSession& session) {
  const std::vector<UnexpectedNode*> there = in_order(session);
  build_secondary(session, false, sources_of(there));
  session.indexes_any_tag = true;
  for (UnexpectedNode* message : there) file_by_source(session, *message);
}

template <typename Counting>
UnexpectedNode* BasicMatcher<Counting>::oldest(MatchSession& session) noexcept {
  if (session.unexpected == 0) return nullptr;
  if (other_ != nullptr) [[unlikely]]
    return other_->find(session, rank_any, 0, 0);
  if (session.orders_by_arrival) return session.arrival_index.first();
  UnexpectedNode* oldest = nullptr;
  each_unexpected(session, [&](UnexpectedNode& message) {
    if (oldest == nullptr || message.post_order < oldest->post_order) oldest = &message;
  });
  return oldest;
}

template <typename Counting>
std::size_t BasicMatcher<Counting>::take_some(MatchSession& session, UnexpectedNode** out, std::size_t most) noexcept {
  std::size_t count = 0;
  if (other_ != nullptr) {
    for (; count < most && session.unexpected != 0; ++count) {
      out[count] = other_->find(session, rank_any, 0, 0);
      other_->take(session, *out[count]);
    }
    return count;
  }
  if (session.unexpected == 0) return 0;
  exact_.each_while([&](MatchNode& node) {
    if (!node.posted && node.session == session.id) out[count++] = static_cast<UnexpectedNode*>(&node);
    return count < most;
  });
  for (std::size_t i = 0; i < count; ++i) take_from_tables(session, *out[i]);
  return count;
}

template <typename Counting>
void BasicMatcher<Counting>::each_of_other(void (*visit)(void*, PostedNode&), void* context) const {
  other_->each(visit, context);
}

template <typename Counting>
matching::Tally BasicMatcher<Counting>::tally() const noexcept {
  matching::Tally sum;
  if constexpr (Counting::on) sum = lists_;
  sum += exact_.tally();
  sum += any_source_.tally();
  sum += any_tag_.tally();
  return sum;
}

template <typename Counting>
std::size_t BasicMatcher<Counting>::bytes() const noexcept {
  return other_ != nullptr ? other_->bytes() : exact_.bytes() + any_source_.bytes() + any_tag_.bytes();
}

template <typename Counting>
const matching::Statistics& BasicMatcher<Counting>::statistics() const noexcept {
  if (other_ != nullptr) return other_->statistics();
  if constexpr (Counting::on) {
    return statistics_;
  } else {
    static constexpr matching::Statistics none;
    return none;
  }
}

template class BasicMatcher<matching::NotCounted>;
template class BasicMatcher<matching::Counted>;

}  // namespace canele::comm
