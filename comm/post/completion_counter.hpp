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

#include "comm/post/listed_waiter.hpp"
#include "comm/state/queue_node.hpp"

namespace canele::comm {
class Engine;
}

namespace canele::comm::post {

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
  std::uint64_t value() const;
  std::uint64_t errors(int* first) const;
  /// Blocks like canele_completion_counter_wait.
  int wait(Engine& engine, std::uint64_t threshold, std::uint64_t deadline);

 private:
  static std::size_t offset_of_node();
  ListedWaiter* unlist_reached();
  bool dismiss(ListedWaiter& waiter);

  mutable std::atomic<bool> taken_;
  bool reached_;  ///< the completion of the threshold has been delivered, or there is none
  std::int32_t first_error_;
  std::uint64_t value_, errors_, threshold_;
  ListedWaiter* waiters_;
  canele_completion_t then_;
  QueueNode node_;
};
static_assert(sizeof(CompletionCounter) <= sizeof(canele_completion_counter_t));

}  // namespace canele::comm::post
