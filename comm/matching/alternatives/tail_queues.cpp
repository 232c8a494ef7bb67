// SPDX-License-Identifier: BSD-3-Clause
//
// Posting and arriving at once. See tail_queues.hpp for the picture. Threads: any.
// Surprise: both sides are one function; only which list is whose differs.
#include "comm/matching/alternatives/tail_queues.hpp"

namespace canele::comm::matching {
namespace {

constexpr int spins_before_yield = 256;

bool fits_pair(const PostedNode& receive, const UnexpectedNode& message) {
  return fits(receive, Envelope{message.tag, message.session, message.source});
}

/// The oldest of the list that fits, taken out.
template <typename Fits>
MatchNode* take_first(NodeFifo& list, Fits fits) {
  for (MatchNode* node = list.first; node != nullptr; node = node->links.next) {
    if (!fits(*node)) continue;
    list.unlink(*node);
    return node;
  }
  return nullptr;
}

/// Moves the inbox to the end of its list, up to the first that fits and, if there is one, what is behind it, too.
template <typename Fits>
MatchNode* empty_inbox(NodeFifo& inbox, NodeFifo& list, Fits fits) {
  MatchNode* found = nullptr;
  while (inbox.first != nullptr) {
    MatchNode& node = *inbox.first;
    inbox.unlink(node);
    if (found == nullptr && fits(node)) {
      found = &node;
    } else {
      list.append(node);
    }
  }
  return found;
}

}  // namespace

template <typename Done>
void QueueLock::spin_until(Done done) noexcept {
  for (int spins = 0; !done(); ++spins) {
    if (spins < spins_before_yield) {
      platform_.relax();
    } else {
      platform_.yield();  // who holds it, or is next, may have no core
    }
  }
}

void QueueLock::enter(Hold& mine) noexcept {
  Hold* before = last_.exchange(&mine, std::memory_order_acq_rel);
  if (before == nullptr) return;
  before->next_.store(&mine, std::memory_order_release);
  spin_until([&] { return !mine.waits_.load(std::memory_order_acquire); });
}

void QueueLock::leave(Hold& mine) noexcept {
  Hold* next = mine.next_.load(std::memory_order_acquire);
  if (next == nullptr) {
    Hold* expected = &mine;
    if (last_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) return;
    spin_until([&] { return (next = mine.next_.load(std::memory_order_acquire)) != nullptr; });
  }
  next->waits_.store(false, std::memory_order_release);
}

UnexpectedNode* TailQueues::post(PostedNode& receive) {
  receive.posted = true;
  receive.match_class = static_cast<std::uint8_t>(classify(receive.source, receive.mask));
  const auto fitting = [&](const MatchNode& node) {
    return fits_pair(receive, static_cast<const UnexpectedNode&>(node));
  };
  const QueueLock::Hold list(messages_lock_);
  MatchNode* found = take_first(messages_, fitting);
  if (found != nullptr) return static_cast<UnexpectedNode*>(found);
  const QueueLock::Hold inbox(inbox_lock_);
  inbox_visits_.fetch_add(1, std::memory_order_relaxed);
  found = empty_inbox(messages_inbox_, messages_, fitting);
  if (found == nullptr) receives_inbox_.append(receive);
  return static_cast<UnexpectedNode*>(found);
}

PostedNode* TailQueues::arrive(UnexpectedNode& message) {
  message.posted = false;
  const auto fitting = [&](const MatchNode& node) { return fits_pair(static_cast<const PostedNode&>(node), message); };
  const QueueLock::Hold list(receives_lock_);
  MatchNode* found = take_first(receives_, fitting);
  if (found != nullptr) return static_cast<PostedNode*>(found);
  const QueueLock::Hold inbox(inbox_lock_);
  inbox_visits_.fetch_add(1, std::memory_order_relaxed);
  found = empty_inbox(receives_inbox_, receives_, fitting);
  if (found == nullptr) messages_inbox_.append(message);
  return static_cast<PostedNode*>(found);
}

}  // namespace canele::comm::matching
