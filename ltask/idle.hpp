// SPDX-License-Identifier: BSD-3-Clause
//
// Idle: what a thread that polls does after a turn that found nothing: spin, yield, or sleep.
//
// Who: the worker, and a waiter that polls.
// Threads: one object per polling thread and wait.
// Surprise: budgets are times, not turns; and who finds a hole in its own polling learns that others want the core.
//     After one of more than 50 µs nobody spins for a while: with other waiting threads on the core a yield costs a
//     microsecond, a sleep and wake-up across cores thirty. One of more than a millisecond was a thread that computes:
//     Pressure.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::ltask {

/// That other threads compute on a core, as those who poll there have found out; and what that means for the calling
/// thread: short turns. A yield costs it the rest of its turn (since Linux 6.18), and who has slept waits for all whose
/// turn ends before its own would: with turns of 0.1 ms instead of 1.4 to 3 both are little. How much time it gets in
/// all is the same. And no yields: who sleeps comes back with the next message, who has yielded does not. Only for who
/// waits alone: among threads that yield to each other those with short turns would have many of them while the rest
/// has one. Threads: any; a lost update costs time. Each time it is found out again soon it is believed for longer.
///
/// Where ranks share the cores (doubt()) one lost turn proves nothing: a rank that starts, or copies a long message, or
/// the machine that stands still for a moment looks the same; and one rank that sleeps slows all down, as each message
/// to it costs a wake-up. There, who computes takes every turn: two lost with hardly a yield between them are believed.
class Pressure {
 public:
  static constexpr std::uint64_t slice_ns = 1'000'000;  ///< away for longer: a thread that computes had the core

  void seen(std::uint64_t now) noexcept {
    times_.fetch_add(1, std::memory_order_relaxed);
    if (disregarded_.load(std::memory_order_relaxed)) return;
    if (doubts_ && came_back_.exchange(0, std::memory_order_relaxed) >= enough_) {
      credit_.store(0, std::memory_order_relaxed);
      return;
    }
    constexpr std::uint64_t at_first = 20'000'000, at_most = 1'000'000'000;
    const std::uint64_t before = span_.load(std::memory_order_relaxed);
    const bool again = now < until_.load(std::memory_order_relaxed) + before;
    const std::uint64_t span = again ? std::min(2 * before, at_most) : at_first;
    span_.store(span, std::memory_order_relaxed);
    until_.store(now + span, std::memory_order_relaxed);
    seen_.store(true, std::memory_order_relaxed);
  }
  /// It is known that nobody computes there, whatever is seen.
  void disregard(bool known) noexcept {
    disregarded_.store(known, std::memory_order_relaxed);
    if (known) until_.store(0, std::memory_order_relaxed);
  }
  /// How often it was seen.
  std::uint64_t times() const noexcept { return times_.load(std::memory_order_relaxed); }
  bool holds(std::uint64_t now) const noexcept {
    return expected_.load(std::memory_order_relaxed) || now < until_.load(std::memory_order_relaxed);
  }
  /// A yield that cost no turn.
  void came_back() noexcept {
    if (!doubts_) return;
    const unsigned before = came_back_.load(std::memory_order_relaxed);
    if (before < enough_) {
      came_back_.store(before + 1, std::memory_order_relaxed);
    } else {
      credit_.store(yields_unwatched_, std::memory_order_relaxed);
    }
  }
  /// Yields where turns come back, as far as is known; false: they do not. Seldom looks at the clock, which costs a
  /// tenth of what a turn does; but now and then, as others may begin to compute.
  bool yields(Platform& platform) noexcept {
    if (seen_.load(std::memory_order_relaxed) || expected_.load(std::memory_order_relaxed)) return false;
    const unsigned left = credit_.load(std::memory_order_relaxed);
    if (left == 0) return yields_watched(platform);
    credit_.store(left - 1, std::memory_order_relaxed);
    platform.yield();
    return true;
  }
  /// Ranks share the cores. Before anybody asks.
  void doubt() noexcept { doubts_ = true; }
  /// It is known without looking. Before anybody asks.
  void expect() noexcept { expected_.store(true, std::memory_order_relaxed); }
  /// Where the thread that polls sleeps while it holds: on this unit (OS index; -1: anywhere). Threads of several ranks
  /// that are bound nowhere would else meet on one core, wake there each time, and slow down one rank for all.
  void prefer(int unit) noexcept { home_.store(unit, std::memory_order_relaxed); }
  /// The calling thread, the only one, is about to sleep. It will wake there, unless another core is idle then.
  void go_home(Platform& platform) noexcept {
    const int home = home_.load(std::memory_order_relaxed);
    if (home >= 0 && platform.current_unit() != home) move(platform, home);
  }
  /// Where ranks fill the host the calling thread has the unit that is its share (Platform::share_of_units), moves
  /// there, and comes back now and then when it yields: the scheduler leaves ranks that yield to each other where they
  /// woke, for seconds, be it all on one unit beside an idle one. More and more seldom, each time that it was moved
  /// away: that may have its reason. Once.
  void settle(Platform& platform, unsigned share) noexcept;
  /// Between two turns: to come back takes some 20 us.
  void come_back_at(Platform& platform, std::uint64_t now) noexcept {
    // Workers run before the first thread settles: with this they see the rest of what it has written.
    if (now >= next_return_.load(std::memory_order_acquire)) [[unlikely]]
      come_back(platform, now);
  }
  /// A thread begins to wait, `alone` on its core but for those who compute. Costs nothing as long as there is no
  /// pressure.
  void follow(Platform& platform, bool alone) noexcept {
    if (seen_.load(std::memory_order_relaxed) || usual_slice != 0) [[unlikely]]
      change_turns(platform, alone);
  }

 private:
  /// Of the calling thread while it has a shorter one; 0: it has not.
  static constinit thread_local std::uint64_t usual_slice __attribute__((tls_model("initial-exec")));
  void change_turns(Platform& platform, bool alone) noexcept;
  bool yields_watched(Platform& platform) noexcept;
  void move(Platform& platform, int home) noexcept;
  void come_back(Platform& platform, std::uint64_t now) noexcept;

  static constexpr unsigned enough_ = 8, yields_unwatched_ = 16;

  std::atomic<bool> seen_{false}, expected_{false}, disregarded_{false};
  bool doubts_ = false;
  std::atomic<unsigned> came_back_{enough_}, credit_{0};  ///< yields since the last lost turn; not to be watched
  std::atomic<int> home_{-1};
  std::uint64_t not_before_ = 0;  ///< the next move
  std::atomic<std::uint64_t> next_return_{~std::uint64_t{0}};
  const void* settler_ = nullptr;  ///< the thread that has settled, its share, and its unit: constant from then on
  unsigned share_ = 0;
  int unit_ = -1;
  std::uint64_t between_returns_ = 5'000'000;
  std::atomic<std::uint64_t> until_{0}, span_{10'000'000}, times_{0};
};

/// How long it pays to yield before a sleep, as those who have slept found out: whoever was woken soon would have done
/// better to go on yielding. Where ranks share cores a sleep costs each message a system call and a wake-up, and the
/// next ones come so late that all fall asleep again. Threads: any; a lost update costs time.
class Patience {
 public:
  /// Somebody slept for so long after it had yielded.
  void slept(std::uint64_t ns) noexcept {
    constexpr unsigned most = 4;
    const unsigned before = doublings_.load(std::memory_order_relaxed);
    if (ns < longest_ns) {
      if (before < most) doublings_.store(before + 1, std::memory_order_relaxed);
    } else if (before > 0) {
      doublings_.store(before - 1, std::memory_order_relaxed);
    }
  }
  std::uint64_t scaled(std::uint64_t yield_ns) const noexcept {
    return yield_ns << doublings_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t longest_ns = 1'500'000;
  std::atomic<unsigned> doublings_{0};
};

class Idle {
 public:
  enum class Action { spin, yield, sleep };

  struct Budget {
    std::uint64_t spin_ns = 20'000;
    std::uint64_t yield_ns = 100'000;
    bool heeds_pressure = true;  ///< false: who has the core is waited for, or brings on what is
  };

  /// Without `patience` the budget is what it is.
  Idle(Platform& platform, Budget budget, Pressure& pressure, const Patience* patience = nullptr)
      : platform_(platform), budget_(budget), pressure_(pressure), patience_(patience) {}

  /// The last turn did something.
  void worked() noexcept { idle_since_ = 0, turns_ = 0; }

  /// The last turn found nothing: what now? Pauses or yields itself; the caller does the sleeping.
  Action next() noexcept {
    if (idle_since_ != 0 && (++turns_ & 15u) != 0 && last_ == Action::spin) {
      platform_.relax();
      return last_;
    }
    return decide(idle_since_ != 0 && last_ == Action::yield ? last_turn_ : platform_.now_ns());
  }

 private:
  static constexpr std::uint64_t hole_ns = 50'000, oversubscribed_for_ns = 10'000'000;

  Action decide(std::uint64_t now) noexcept {
    if (idle_since_ == 0) {
      idle_since_ = now;
    } else if (last_ == Action::spin) {
      if (now - last_turn_ > hole_ns) oversubscribed_until_ = now + oversubscribed_for_ns;
      if (now - last_turn_ > Pressure::slice_ns) pressure_.seen(now);
    }
    last_turn_ = now;
    const std::uint64_t idle = now - idle_since_;
    const std::uint64_t spin = now < oversubscribed_until_ ? 0 : budget_.spin_ns;
    if (idle < spin) {
      last_ = Action::spin;
      platform_.relax();
    } else if (idle < spin + yields_for() && !(budget_.heeds_pressure && pressure_.holds(now))) {
      last_ = Action::yield;
      platform_.yield();
      // Now: the next turn may find something to do, since it comes so late, and never ask here.
      last_turn_ = platform_.now_ns();
      pressure_.come_back_at(platform_, last_turn_);
      if (!budget_.heeds_pressure) return last_;
      last_turn_ - now > Pressure::slice_ns ? pressure_.seen(last_turn_) : pressure_.came_back();
    } else {
      last_ = Action::sleep;
    }
    return last_;
  }

  std::uint64_t yields_for() const noexcept {
    return patience_ == nullptr ? budget_.yield_ns : patience_->scaled(budget_.yield_ns);
  }

  Platform& platform_;
  Budget budget_;
  Pressure& pressure_;
  const Patience* patience_;
  std::uint64_t idle_since_ = 0, last_turn_ = 0, oversubscribed_until_ = 0;
  unsigned turns_ = 0;
  Action last_ = Action::spin;
};

}  // namespace canele::ltask
