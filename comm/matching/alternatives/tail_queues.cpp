// SPDX-License-Identifier: BSD-3-Clause
//
// Concurrent posting and arriving. Both sides are one function; they differ only in which lists they use.
#include "comm/matching/alternatives/tail_queues.hpp"

namespace canele::comm::matching {
namespace {

constexpr int spins_before_yield = 256;

/// Moves the nodes of the inbox to the end of its list, except the first one that fits, which is returned.
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
      platform_.yield();  // the owner of the lock, or the next thread, may have no core
    }
  }
}

void QueueLock::lock(Hold& mine) noexcept {
  Hold* before = last_.exchange(&mine, std::memory_order_acq_rel);
  if (before == nullptr) return;
  before->next_.store(&mine, std::memory_order_release);
  spin_until([&] { return !mine.waits_.load(std::memory_order_acquire); });
}

void QueueLock::unlock(Hold& mine) noexcept {
  Hold* next = mine.next_.load(std::memory_order_acquire);
  if (next == nullptr) {
    Hold* expected = &mine;
    if (last_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) return;
    spin_until([&] { return (next = mine.next_.load(std::memory_order_acquire)) != nullptr; });
  }
  next->waits_.store(false, std::memory_order_release);
}

template <typename Fits>
MatchNode* TailQueues::meet(QueueLock& lock, NodeFifo& list, NodeFifo& inbox, NodeFifo& own_inbox, MatchNode& mine,
                            Fits fits) {
  const QueueLock::Hold list_locked(lock);
  if (MatchNode* found = list.take_first(fits); found != nullptr) return found;
  const QueueLock::Hold inboxes_locked(inbox_lock_);
  inbox_visits_.fetch_add(1, std::memory_order_relaxed);
  MatchNode* found = empty_inbox(inbox, list, fits);
  if (found == nullptr) own_inbox.append(mine);
  return found;
}

UnexpectedNode* TailQueues::post(PostedNode& receive) {
  receive.posted = true;
  receive.match_class = static_cast<std::uint8_t>(classify(receive.source, receive.mask));
  return static_cast<UnexpectedNode*>(
      meet(messages_lock_, messages_, messages_inbox_, receives_inbox_, receive,
           [&](const MatchNode& node) { return fits(receive, static_cast<const UnexpectedNode&>(node)); }));
}

PostedNode* TailQueues::arrive(UnexpectedNode& message) {
  message.posted = false;
  return static_cast<PostedNode*>(
      meet(receives_lock_, receives_, receives_inbox_, messages_inbox_, message,
           [&](const MatchNode& node) { return fits(static_cast<const PostedNode&>(node), message); }));
}

}  // namespace canele::comm::matching
