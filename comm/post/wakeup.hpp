// SPDX-License-Identifier: BSD-3-Clause
//
// Wakeup: lets a program sleep in a poll of its own until a completion queue has an entry. See basic_wakeup.hpp.
//
// One thread at a time arms and disarms; any thread adds entries.
#pragma once

#include "comm/engine/engine.hpp"
#include "comm/post/basic_wakeup.hpp"
#include "comm/state/completion_queue.hpp"

namespace canele::comm::post {

/// A completion queue, as a source of events. Lives as long as the queue.
class QueueEvents {
 public:
  QueueEvents(CompletionQueue& queue, Platform& platform)
      : queue_(&queue), platform_(&platform), waiter_(std::make_unique<ListedWaiter>()) {}

  bool listen(ltask::Parker& parker) {
    // The queue's lock publishes it.
    waiter_->word.store(reinterpret_cast<std::uintptr_t>(&parker) << RequestWord::parker_shift,
                        std::memory_order_relaxed);
    return queue_->enlist(*waiter_, *platform_);
  }
  void hear_no_more() { queue_->dismiss(*waiter_, *platform_); }

 private:
  CompletionQueue* queue_;
  Platform* platform_;
  std::unique_ptr<ListedWaiter> waiter_;
};

using Wakeup = BasicWakeup<Engine, QueueEvents>;

}  // namespace canele::comm::post
