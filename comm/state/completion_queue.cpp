// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues: adding, and the list of waiters.
#include "comm/state/completion_queue.hpp"

namespace canele::comm {
void CompletionQueue::push(QueueNode& node, QueueNode::Owner owner, Platform& platform) {
  ltask::Parker* parker = nullptr;
  {
    const SpinGuard guard(taken_, platform);
    node.next = 0;
    (last_ != nullptr ? last_->next : first_) = link_to(node, owner);
    last_ = &node;
    if (waiters_ != nullptr) {
      ListedWaiter& waiter = *waiters_;
      waiters_ = waiter.next;
      if (waiters_ == nullptr) last_waiter_ = nullptr;
      parker = waiter.wake();
    }
  }
  if (parker != nullptr) parker->signal(platform);
}

bool CompletionQueue::enlist(ListedWaiter& waiter, Platform& platform) {
  const SpinGuard guard(taken_, platform);
  if (first_ != 0) return false;
  (last_waiter_ != nullptr ? last_waiter_->next : waiters_) = &waiter;
  last_waiter_ = &waiter;
  return true;
}

void CompletionQueue::dismiss(ListedWaiter& waiter, Platform& platform) {
  const SpinGuard guard(taken_, platform);
  if (!unlist(waiters_, waiter) || last_waiter_ != &waiter) return;
  last_waiter_ = waiters_;
  while (last_waiter_ != nullptr && last_waiter_->next != nullptr) last_waiter_ = last_waiter_->next;
}

}  // namespace canele::comm
