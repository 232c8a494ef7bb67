// SPDX-License-Identifier: BSD-3-Clause
//
// Waiters: the threads that block in the library, of which at most one polls for all.
//
// Used by post/wait. Any thread.
//
// The polling thread holds a token, not a lock. When its own wait ends, it passes the token on by waking one sleeping
// waiter. That waiter takes the token, or passes it on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ltask/idle.hpp"
#include "ltask/parker.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

/// What waiting threads have learned about the cores that they share, for the waits to come. All of it is a guess: an
/// error costs only time. So threads may overwrite each other's values.
class WaiterHeuristics {
 public:
  /// Returns whether other threads had the core between two polls of a waiting thread.
  bool contended() const noexcept { return contention_.load(std::memory_order_relaxed) > 0; }
  void yielded(bool lost_a_turn) noexcept {
    constexpr int remembered = 64;  // number of polls, without a lost turn, until it is forgotten
    const int before = contention_.load(std::memory_order_relaxed);
    const int after = lost_a_turn ? remembered : before > 0 ? before - 1 : 0;
    if (after != before) contention_.store(after, std::memory_order_relaxed);
  }

  /// Returns whether threads should take turns. Turns pay off where many threads have messages at once: a thread
  /// whose turn comes finds its own message there. They do not if each message is for one of many threads: then few
  /// threads should be awake. Even then it returns true now and then, to try again.
  bool turns_pay() noexcept {
    constexpr unsigned seldom = 64;
    if (gain_.load(std::memory_order_relaxed) > 0) return true;
    const unsigned declined = declined_.load(std::memory_order_relaxed) + 1;
    declined_.store(declined, std::memory_order_relaxed);
    return declined % seldom == 0;
  }
  void took_turns(bool well) noexcept { change_gain(well ? 1 : -2); }
  /// Records how many sleeping threads were woken at once.
  void woke(int threads) noexcept {
    if (threads > 1) change_gain(threads);
  }

 private:
  static constexpr int most_gain = 16;
  void change_gain(int by) noexcept {
    const int before = gain_.load(std::memory_order_relaxed);
    const int after = before + by > most_gain ? most_gain : before + by < 0 ? 0 : before + by;
    if (after != before) gain_.store(after, std::memory_order_relaxed);
  }

  std::atomic<int> contention_{0}, gain_{most_gain};
  std::atomic<unsigned> declined_{0};
};

struct BlockedThread;

class Waiters {
 public:
  /// Called when a thread begins to wait, and when its wait ends.
  void enter() noexcept { present_.fetch_add(1, std::memory_order_relaxed); }
  void exit() noexcept { present_.fetch_sub(1, std::memory_order_relaxed); }
  /// Returns the number of threads that wait now.
  int present() const noexcept { return present_.load(std::memory_order_relaxed); }
  WaiterHeuristics heuristics;
  ltask::CpuContention contention;  ///< of compute threads on their cores
  ltask::AdaptiveYield adaptive_yield;

  bool try_take_token() noexcept {
    return !token_.load(std::memory_order_relaxed) && !token_.exchange(true, std::memory_order_acquire);
  }
  /// Gives the token up and wakes a waiter to take it.
  void pass_token(Platform& platform) {
    // partner: add(), after which the waiter checks token_free(). One of the two sees the other.
    token_.store(false, std::memory_order_seq_cst);
    wake_one(platform);
  }
  /// Wakes a sleeping waiter, if there is one, to take the token.
  void wake_one(Platform& platform) {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard guard(mutex_);
    if (!parked_.empty()) parked_.back()->signal(platform);
  }
  /// Returns whether waiting threads sleep and rely on the holder of the token.
  bool others_sleep() const noexcept { return sleeping_.load(std::memory_order_relaxed) != 0; }
  /// Returns whether the token is free, so that a thread should poll.
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

  void enlist(BlockedThread& blocked) {
    const std::lock_guard guard(mutex_);
    blocked_threads_.push_back(&blocked);
  }
  void dismiss(BlockedThread& blocked) {
    const std::lock_guard guard(mutex_);
    std::erase(blocked_threads_, &blocked);
  }
  /// Calls visit(const BlockedThread&) for every blocked thread.
  template <typename Visit>
  void each_blocked_thread(Visit visit) {
    const std::lock_guard guard(mutex_);
    for (const BlockedThread* one : blocked_threads_) visit(*one);
  }

 private:
  alignas(64) std::atomic<int> present_{0};
  alignas(64) std::atomic<bool> token_{false};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;  // taken only by threads that are about to sleep, or that wake one
  std::vector<ltask::Parker*> parked_;
  std::vector<BlockedThread*> blocked_threads_;
};

}  // namespace canele::comm
