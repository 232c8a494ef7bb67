// SPDX-License-Identifier: BSD-3-Clause
//
// CompletionCounter: what a canele_completion_counter_t holds. A number of completions, a threshold with its own
// completion, and the threads that wait for a value.
//
// Any thread. A spin lock guards all fields and is held for a few instructions. A reader takes the lock, too: a thread
// that has read the last value may free the counter, as the thread that added it has left.
#pragma once

#include <canele/post.h>

#include <atomic>
#include <cstdint>

#include "comm/state/after_unlock.hpp"
#include "comm/state/listed_waiter.hpp"
#include "comm/state/queue_node.hpp"

namespace canele::comm {

class CompletionCounter {
 public:
  static CompletionCounter& of(canele_completion_counter_t* counter) {
    return *reinterpret_cast<CompletionCounter*>(counter);
  }
  /// The counter that the node is part of.
  static CompletionCounter& of(QueueNode& node) {
    return *reinterpret_cast<CompletionCounter*>(reinterpret_cast<char*>(&node) - offset_of_node());
  }

  void init(std::uint64_t threshold, const canele_completion_t& then);
  /// Adds the end of operations with outcome `error`. Delivers the completion of the threshold if that is reached, and
  /// wakes the threads whose value is. Does not access the counter afterwards.
  void add(std::uint64_t n, int error);
  /// Adds `n` successes for a caller that holds the engine's lock. Threads to be woken are left to `after_unlock`.
  /// Returns false, with nothing done, if the threshold would be reached: its completion may call the program.
  bool add_under_lock(std::uint64_t n, PostUnlockActions& after_unlock);
  std::uint64_t value() const;
  std::uint64_t errors(int* first) const;
  /// Lists the calling thread as a waiter for waiter.threshold. Returns false if the value is reached.
  bool enlist(ListedWaiter& waiter);
  /// Ends the listing of a waiter that gives up. Returns false if its value is reached: it is being woken.
  bool dismiss(ListedWaiter& waiter);

 private:
  static std::size_t offset_of_node();
  ListedWaiter* unlist_reached();

  mutable std::atomic<bool> taken_;
  bool reached_;  ///< the completion of the threshold has been delivered, or there is none
  std::int32_t first_error_;
  std::uint64_t value_, errors_, threshold_;
  ListedWaiter* waiters_;
  canele_completion_t then_;
  QueueNode node_;
};
static_assert(sizeof(CompletionCounter) <= sizeof(canele_completion_counter_t));

}  // namespace canele::comm
