// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeper: where the one thread that polls for an engine sleeps: an epoll set of the drivers' descriptors and of its
// own doorbell.
//
// Who: Engine::sleep and Engine::wake.
// Threads: one sleeper at a time (try_claim); wake by any.
// Surprise: a wake() is never lost: it leaves a mark that the next sleeper finds before it sleeps, and rings a
//     doorbell if somebody sleeps already. Mark and claim are sequentially consistent, so one of the two sees the
//     other. Who finds the claim taken waits for its end, and does not try again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ltask/platform.hpp"

namespace canele::ltask {

class Sleeper {
 public:
  Sleeper();
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// "" or why it cannot work (descriptors exhausted).
  const std::string& error() const { return error_; }

  /// Adds a descriptor whose readability ends the sleep.
  bool watch(int descriptor);

  /// The caller is going to sleep; false if another thread is.
  bool try_claim() noexcept;
  /// Sleeps until a watched descriptor is readable or wake() is called, at most timeout_ns. Only after try_claim, and a
  /// last look for work.
  void sleep(std::uint64_t timeout_ns) noexcept;
  /// Ends the claim, and the wait of those who wait for that.
  void release(Platform& platform) noexcept;
  /// After a refused claim: waits for its end, at most timeout_ns.
  void await_release(Platform& platform, std::uint64_t timeout_ns) noexcept;

  /// Somebody sleeps or is about to. Call after making work visible.
  bool occupied() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return claim_.load(std::memory_order_relaxed) != unclaimed;
  }
  /// Ends the sleep of whoever sleeps, or keeps the next one from sleeping. A system call only in the first case.
  void wake() noexcept;

 private:
  int epoll_ = -1, event_ = -1;
  std::string error_;
  static constexpr std::uint32_t unclaimed = 0, claimed = 1, awaited = 2;  // awaited: claimed, and others wait
  std::atomic<std::uint32_t> claim_{unclaimed};
  std::atomic<bool> marked_{false};
};

}  // namespace canele::ltask
