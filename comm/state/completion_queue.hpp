// SPDX-License-Identifier: BSD-3-Clause
//
// CompletionQueue: what a canele_queue_t holds. Completions in order, and the threads that wait for one.
//
// Any thread. A spin lock guards both lists and is held for a few instructions. An entry that is added wakes the thread
// that has waited longest.
//
//   first ─next▶ … ─▶ last         requests and counters, linked through their QueueNode
//   waiters ─next▶ …               threads that found the queue empty
//
// A link is the address of a node, with the node's kind in its low bits.
#pragma once

#include <canele/post.h>

#include <atomic>
#include <cstdint>

#include "comm/state/listed_waiter.hpp"
#include "comm/state/queue_node.hpp"
#include "comm/state/spin_guard.hpp"

namespace canele::comm {

class CompletionQueue {
 public:
  /// A node taken out of the queue.
  struct Taken {
    QueueNode* node;
    QueueNode::Owner owner;
  };

  /// Adds a node, and wakes a thread for it. Reads nothing of the node's object afterwards.
  void push(QueueNode& node, QueueNode::Owner owner, Platform& platform);
  /// Takes at most `max` nodes. Calls visit(index, Taken) for each, under the lock. Returns their number.
  template <typename Visit>
  int take(int max, Platform& platform, Visit visit);
  /// Lists the calling thread as a waiter. Returns false if the queue has an entry.
  bool enlist(ListedWaiter& waiter, Platform& platform);
  /// Ends the listing.
  void dismiss(ListedWaiter& waiter, Platform& platform);

 private:
  static constexpr std::uintptr_t kind_bits = 7;
  static std::uintptr_t link_to(QueueNode& node, QueueNode::Owner owner) {
    return reinterpret_cast<std::uintptr_t>(&node) | static_cast<std::uintptr_t>(owner);
  }
  static Taken of(std::uintptr_t link) {
    return {reinterpret_cast<QueueNode*>(link & ~kind_bits), static_cast<QueueNode::Owner>(link & kind_bits)};
  }

  std::atomic<bool> taken_;
  std::uintptr_t first_;
  QueueNode* last_;
  ListedWaiter *waiters_, *last_waiter_;
};
static_assert(sizeof(CompletionQueue) <= sizeof(canele_queue_t));
static_assert(alignof(QueueNode) == 8, "a link has three bits for the kind");

inline CompletionQueue& queue_of(canele_queue_t* queue) { return *reinterpret_cast<CompletionQueue*>(queue); }

template <typename Visit>
int CompletionQueue::take(int max, Platform& platform, Visit visit) {
  const SpinGuard guard(taken_, platform);
  int count = 0;
  for (; count < max && first_ != 0; ++count) {
    const Taken taken = of(first_);
    first_ = taken.node->next;
    if (first_ == 0) last_ = nullptr;
    visit(count, taken);
  }
  return count;
}

}  // namespace canele::comm
