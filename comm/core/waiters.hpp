// SPDX-License-Identifier: BSD-3-Clause
//
// Waiters: the threads that block in the library, of which at most one polls for all.
//
// Who: api/wait.
// Threads: any.
// Surprise: the poller holds a token, not a lock; when its own wait is over it passes the token by waking one
//     sleeping waiter, who takes it or passes it on.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "ltask/parker.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

class Waiters {
 public:
  bool try_take_token() noexcept {
    return !token_.load(std::memory_order_relaxed) && !token_.exchange(true, std::memory_order_acquire);
  }
  /// Gives the token up and wakes a waiter to take it.
  void pass_token(Platform& platform) {
    token_.store(false, std::memory_order_seq_cst);
    wake_one(platform);
  }
  /// Wakes a sleeping waiter, if there is one, to take the token.
  void wake_one(Platform& platform) {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard guard(mutex_);
    if (!parked_.empty()) parked_.back()->signal(platform);
  }
  /// The token is free: somebody should poll.
  bool token_free() const noexcept { return !token_.load(std::memory_order_seq_cst); }

  void add(ltask::Parker& parker) {
    const std::lock_guard guard(mutex_);
    parked_.push_back(&parker);
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
  }
  void remove(ltask::Parker& parker) {
    const std::lock_guard guard(mutex_);
    std::erase(parked_, &parker);
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  alignas(64) std::atomic<bool> token_{false};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;  // only threads that are about to sleep, or wake one
  std::vector<ltask::Parker*> parked_;
};

}  // namespace canele::comm
