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
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ltask/idle.hpp"
#include "ltask/parker.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

class Engine;

/// Something a thread waits for: a word of flags whose upper 48 bits name the waiter. Requests and conditions have one.
struct Target {
  std::atomic<std::uint64_t>* word;
  std::uint64_t mask;
  Engine* writer;  ///< a request's: under its lock `mask` is set; nullptr: by anybody, by atomic operations
  bool done() const { return (word->load(std::memory_order_acquire) & mask) != 0; }
};

/// What waiting threads have found out about the cores that they share, for the next ones. All of it is a guess that
/// costs time if it is wrong, nothing else; so threads may overwrite each other's.
class Crowd {
 public:
  /// Others had the core between two turns of a thread that waits.
  bool contended() const noexcept { return contention_.load(std::memory_order_relaxed) > 0; }
  void yielded(bool lost_a_turn) noexcept {
    constexpr int remembered = 64;  // turns that nobody else wanted
    const int before = contention_.load(std::memory_order_relaxed);
    const int after = lost_a_turn ? remembered : before > 0 ? before - 1 : 0;
    if (after != before) contention_.store(after, std::memory_order_relaxed);
  }

  /// Taking turns pays where many threads have messages at a time: whoever has its turn again finds its own there. It
  /// does not where one of many is meant by each message: then few should be awake. Tried now and then.
  bool turns_pay() noexcept {
    constexpr unsigned seldom = 64;
    if (gain_.load(std::memory_order_relaxed) > 0) return true;
    const unsigned refused = refused_.load(std::memory_order_relaxed) + 1;
    refused_.store(refused, std::memory_order_relaxed);
    return refused % seldom == 0;
  }
  void took_turns(bool well) noexcept { change_gain(well ? 1 : -2); }
  /// So many sleeping threads were woken at once.
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
  std::atomic<unsigned> refused_{0};
};

struct Blocked;

class Waiters {
 public:
  /// A thread begins to wait, and ends.
  void enter() noexcept { present_.fetch_add(1, std::memory_order_relaxed); }
  void leave() noexcept { present_.fetch_sub(1, std::memory_order_relaxed); }
  /// Threads that wait now.
  int present() const noexcept { return present_.load(std::memory_order_relaxed); }
  Crowd crowd;
  ltask::Pressure pressure;  ///< on their cores
  ltask::Patience patience;

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
  /// Waiting threads sleep and rely on the holder of the token.
  bool others_sleep() const noexcept { return sleeping_.load(std::memory_order_relaxed) != 0; }
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

  void enlist(Blocked& blocked) {
    const std::lock_guard guard(mutex_);
    blocked_.push_back(&blocked);
  }
  void dismiss(Blocked& blocked) {
    const std::lock_guard guard(mutex_);
    std::erase(blocked_, &blocked);
  }
  /// visit(const Blocked&) for every thread that is blocked.
  template <typename Visit>
  void each_blocked(Visit visit) {
    const std::lock_guard guard(mutex_);
    for (const Blocked* one : blocked_) visit(*one);
  }

 private:
  alignas(64) std::atomic<int> present_{0};
  alignas(64) std::atomic<bool> token_{false};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;  // only threads that are about to sleep, or wake one
  std::vector<ltask::Parker*> parked_;
  std::vector<Blocked*> blocked_;
};

}  // namespace canele::comm
