// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeper: where the one thread that polls for an engine sleeps, on the drivers' descriptors and a doorbell.
//
// Used by Engine::sleep() and Engine::wake(). One thread at a time sleeps (try_claim); any thread may call wake().
//
// A wake() is never lost. It leaves a mark that the next sleeper finds before it sleeps, and rings the bell if a thread
// sleeps already. Mark and claim are sequentially consistent, so one of the two threads sees the other. A thread that
// finds the claim taken waits for its end instead of retrying.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "ltask/platform.hpp"

namespace canele::ltask {

/// An event that one thread waits for, beside the work of all threads: a reason not to sleep.
struct Called {
  bool (*check)(const void*) = nullptr;
  const void* at = nullptr;
  bool operator()() const { return check != nullptr && check(at); }
};

class Sleeper {
 public:
  explicit Sleeper(Platform& platform);
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// "", or why it cannot work (descriptors exhausted).
  const std::string& error() const { return error_; }

  /// Adds a descriptor whose readability ends the sleep.
  bool watch(int descriptor);
  /// Returns a descriptor that is readable when a watched one is; -1: there is none.
  int descriptor() const noexcept { return set_ == nullptr ? -1 : set_->descriptor(); }

  /// Claims the sleep for the caller. Returns false if another thread has it.
  bool try_claim() noexcept;
  /// Sleeps until a watched descriptor is readable or wake() is called, at most timeout_ns. Call it only after
  /// try_claim() and a last check for work. Returns at once if `called`, because an earlier sleeper may have consumed a
  /// wake() from before the claim.
  void sleep(std::uint64_t timeout_ns, Called called = {}) noexcept;
  /// For a program that has claimed the sleep, and sleeps on descriptor() by itself: returns true if it must not,
  /// because wake() was called.
  bool must_not_sleep() noexcept { return marked_.exchange(false, std::memory_order_seq_cst); }
  /// Ends the claim, and wakes the threads that wait for its end.
  void release() noexcept;
  /// Waits for the end of another thread's claim, at most timeout_ns.
  void await_release(std::uint64_t timeout_ns) noexcept;

  /// Returns whether a thread sleeps or is about to. Call it after making work visible.
  bool occupied() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return claim_.load(std::memory_order_relaxed) != unclaimed;
  }
  /// Ends the current sleep, or keeps the next one from beginning. A system call only in the first case.
  void wake() noexcept;

 private:
  Platform& platform_;
  std::string error_;
  std::unique_ptr<WakeSet> set_;
  static constexpr std::uint32_t unclaimed = 0, claimed = 1, awaited = 2;  // awaited: claimed, and other threads wait
  std::atomic<std::uint32_t> claim_{unclaimed};
  std::atomic<bool> marked_{false};
};

}  // namespace canele::ltask
