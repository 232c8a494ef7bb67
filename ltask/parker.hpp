// SPDX-License-Identifier: BSD-3-Clause
//
// Parker: what one thread sleeps on while it waits for a request or a condition.
//
// Used by comm/post/wait. The owner parks; any thread signals.
//
// Parkers are never freed, only reused. The thread that completes a request reads the parker's address out of it, and
// signals an owner that may already have left. Such a late signal is only a spurious wake-up for the next owner.
#pragma once

#include <atomic>
#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::ltask {

class alignas(64) Parker {
 public:
  /// Forgets earlier signals. Called by the owner, which then checks whether its event has happened. An exchange: a
  /// plain store could be delayed beyond that check, and erase a signal that came after it.
  void reset() noexcept { word_.exchange(0, std::memory_order_seq_cst); }

  bool signaled() const noexcept { return (word_.load(std::memory_order_acquire) & signaled_bit) != 0; }

  /// Sleeps until signaled, at most timeout_ns. Returns true if signaled.
  bool park(Platform& platform, std::uint64_t timeout_ns) noexcept {
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, parked_word, std::memory_order_acq_rel)) return signaled();
    platform.park(word_, parked_word, timeout_ns);
    expected = parked_word;
    word_.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
    return signaled();
  }

  /// Wakes the owner. A system call only if the owner sleeps. While `wake_up` runs, the owner does not return from
  /// awake(): what it slept on may be freed after that.
  void signal(Platform& platform) noexcept {
    const std::uint32_t before = word_.fetch_or(signaled_bit, std::memory_order_seq_cst);
    if (before == parked_word) platform.unpark(word_);
    if (before != elsewhere_word) return;
    wake_up_.load(std::memory_order_relaxed)(where_.load(std::memory_order_relaxed));
    word_.fetch_and(~elsewhere_word, std::memory_order_release);  // partner: the load in awake()
  }

  /// Announces that the owner is about to sleep on the drivers, where `wake_up(where)` wakes it. Returns false if it is
  /// signaled already and must not sleep.
  bool sleeps_elsewhere(void (*wake_up)(void*), void* where) noexcept {
    wake_up_.store(wake_up, std::memory_order_relaxed);
    where_.store(where, std::memory_order_relaxed);
    std::uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, elsewhere_word, std::memory_order_seq_cst);
  }
  /// Ends what sleeps_elsewhere() began. Waits for a signal that is inside `wake_up`.
  void awake(Platform& platform) noexcept {
    std::uint32_t seen = elsewhere_word;
    if (word_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) return;
    for (; (seen & elsewhere_word) != 0; seen = word_.load(std::memory_order_acquire)) {  // partner: signal()
      platform.yield();
    }
  }

  /// Take a parker from the process-wide pool for the calling thread, and give it back.
  static Parker& acquire();
  static void release(Parker& parker) noexcept;

 private:
  static constexpr std::uint32_t parked_word = 1, elsewhere_word = 2, signaled_bit = 4;
  std::atomic<std::uint32_t> word_{0};
  std::atomic<void (*)(void*)> wake_up_{nullptr};  // where the owner sleeps, if not here
  std::atomic<void*> where_{nullptr};
  Parker* next_free_ = nullptr;
};

}  // namespace canele::ltask
