// SPDX-License-Identifier: BSD-3-Clause
//
// The bound worker: one thread that makes progress for one engine.
//
// The engine starts, binds and stops it. Any thread may call these functions; start and stop are serialized inside.
//
// The worker publishes what it is doing. A waiting thread relies on the worker only while the worker's heartbeat moves,
// or while it sleeps with every wake-up armed. It no longer relies on a worker that was descheduled, or is inside a
// long callback.
//
//   off ──start──▶ polling ──nothing for a while──▶ sleeping (armed) ──arrival, submission──▶ polling ──stop──▶ off
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ltask/idle.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"

namespace canele::ltask {

/// What a worker drives.
class Progress {
 public:
  /// Makes one step without blocking. Returns how much it did (0: nothing).
  virtual int step() = 0;
  /// Arms every wake-up, checks once more, and sleeps at most timeout_ns, unless `called`. If another thread sleeps
  /// already, it waits for the end of that sleep instead.
  virtual void sleep(std::uint64_t timeout_ns, Called called) = 0;
  /// Ends the current sleep(), or the next one.
  virtual void wake() = 0;

 protected:
  ~Progress() = default;
};

class Worker {
 public:
  enum class State : std::uint8_t { off, polling, sleeping };
  static constexpr std::uint64_t longest_sleep_ns = 1'000'000'000;
  static constexpr std::uint64_t turn_ns = 100'000;  ///< short slices come soon; its bursts of work are shorter

  Worker(Platform& platform, Progress& progress, Idle::Budget budget)
      : platform_(platform), progress_(progress), budget_(budget) {}
  ~Worker() { stop(); }

  /// Starts the thread if there is none.
  void start();
  /// Ends the thread; waits for its current step. Must not be called by the worker itself.
  void stop();

  bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// Returns the heartbeat count, which changes with each turn of its loop.
  std::uint64_t heartbeats() const noexcept { return heartbeats_.load(std::memory_order_relaxed); }
  /// Returns where the worker last came out of a sleep (OS index); -1: nowhere yet.
  int unit() const noexcept { return unit_.load(std::memory_order_relaxed); }
  /// Returns true if the calling thread is this worker.
  bool is_caller() const noexcept;
  std::uint64_t core_losses() const noexcept { return contention_.times(); }
  /// Returns whether compute threads have taken slices from the worker lately.
  bool shares_core() const noexcept { return active() && contention_.holds(platform_.now_ns()); }
  /// Declares whether, as far as is known, only workers use the core that this one is pinned to. Workers of other ranks
  /// may use it. Their slices end soon, and are no sign of a program that computes there.
  void keep_among_workers(bool known) noexcept {
    among_workers_.store(known, std::memory_order_relaxed);
    contention_.disregard(known);
  }
  bool among_workers() const noexcept { return among_workers_.load(std::memory_order_relaxed); }
  /// Sets where the worker sleeps beside compute threads: see CpuContention.
  void prefer(int unit) noexcept { contention_.prefer(unit); }
  /// Returns the OS name of the thread (gettid), 0 if there is none.
  long native_id() const;

 private:
  void loop();

  Platform& platform_;
  Progress& progress_;
  Idle::Budget budget_;
  CpuContention contention_;      ///< on the worker's core
  AdaptiveYield adaptive_yield_;  ///< used among workers
  mutable std::mutex mutex_;      // start and stop only
  std::unique_ptr<PlatformThread> thread_;
  std::atomic<bool> active_{false}, stopping_{false}, among_workers_{false};
  std::atomic<State> state_{State::off};
  std::atomic<std::uint64_t> heartbeats_{0};
  std::atomic<int> unit_{-1};
  std::atomic<const void*> self_{nullptr};  ///< the thread in loop()
};

}  // namespace canele::ltask
