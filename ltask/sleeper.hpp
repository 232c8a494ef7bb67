// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeper: where the one thread that polls for an engine sleeps: on the drivers' descriptors and a bell of its own.
//
// Who: Engine::sleep and Engine::wake.
// Threads: one sleeper at a time (try_claim); wake by any.
// Surprise: a wake() is never lost: it leaves a mark that the next sleeper finds before it sleeps, and rings the
//     bell if somebody sleeps already. Mark and claim are sequentially consistent, so one of the two sees the
//     other. Who finds the claim taken waits for its end, and does not try again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "ltask/platform.hpp"

namespace canele::ltask {

/// What one thread waits for beside the work of all: a reason not to sleep.
struct Called {
  bool (*look)(const void*) = nullptr;
  const void* at = nullptr;
  bool operator()() const { return look != nullptr && look(at); }
};

class Sleeper {
 public:
  explicit Sleeper(Platform& platform);
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// "" or why it cannot work (descriptors exhausted).
  const std::string& error() const { return error_; }

  /// Adds a descriptor whose readability ends the sleep.
  bool watch(int descriptor);
  /// Readable when one of them is; -1: there is none.
  int descriptor() const noexcept { return set_ == nullptr ? -1 : set_->descriptor(); }

  /// The caller is going to sleep; false if another thread is.
  bool try_claim() noexcept;
  /// Sleeps until a watched descriptor is readable or wake() is called, at most timeout_ns. Only after try_claim, and a
  /// last look for work. Not if the caller is `called`: a wake() before the claim may have been used up by who slept
  /// then.
  void sleep(std::uint64_t timeout_ns, Called called = {}) noexcept;
  /// Ends the claim, and the wait of those who wait for that.
  void release() noexcept;
  /// After a refused claim: waits for its end, at most timeout_ns.
  void await_release(std::uint64_t timeout_ns) noexcept;

  /// Somebody sleeps or is about to. Call after making work visible.
  bool occupied() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return claim_.load(std::memory_order_relaxed) != unclaimed;
  }
  /// Ends the sleep of whoever sleeps, or keeps the next one from sleeping. A system call only in the first case.
  void wake() noexcept;

 private:
  Platform& platform_;
  std::string error_;
  std::unique_ptr<WakeSet> set_;
  static constexpr std::uint32_t unclaimed = 0, claimed = 1, awaited = 2;  // awaited: claimed, and others wait
  std::atomic<std::uint32_t> claim_{unclaimed};
  std::atomic<bool> marked_{false};
};

}  // namespace canele::ltask
