// SPDX-License-Identifier: BSD-3-Clause
//
// Idle: decides what a polling thread does after a poll that found nothing: spin, yield, or sleep.
//
// Used by the worker, and by a waiting thread that polls. One object per polling thread and wait.
//
// Budgets are times, not numbers of polls. A thread that finds a gap in its own polling learns that other threads want
// the core. After a gap of more than 50 µs it does not spin for a while. With other waiting threads on the core, a
// yield is much cheaper than a sleep and a wake-up across cores. A gap of more than a millisecond comes from a compute
// thread: see CpuContention.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::ltask {

/// Knowledge that other threads compute on a core, as found out by the threads that poll there. Any thread; a lost
/// update costs only time.
///
/// For the calling thread it means short time slices. A yield costs the thread the rest of its slice (since Linux
/// 6.18). After a sleep it waits for all threads whose slice ends before its own would. With slices of 0.1 ms both
/// costs are small. The total time that it gets is unchanged. It also means no yields: a sleeping thread comes back
/// with the next message, a yielding one does not. Short slices are only for a thread that waits alone. Among threads
/// that yield to each other, one with short slices would have many of them while the others have one. Each time that
/// contention is found again soon, it is believed for longer.
///
/// Where ranks share the cores (doubt()), one lost slice proves nothing. A rank that starts, or copies a long message,
/// or a machine that stands still for a moment, looks the same. And one rank that sleeps slows all ranks down, because
/// each message to it costs a wake-up. A thread that really computes there takes every slice. So two lost slices with
/// hardly a yield between them are believed.
class CpuContention {
 public:
  static constexpr std::uint64_t slice_ns = 1'000'000;  ///< a longer absence means that a compute thread had the core

  void seen(std::uint64_t now) noexcept {
    times_.fetch_add(1, std::memory_order_relaxed);
    if (disregarded_.load(std::memory_order_relaxed)) return;
    if (doubts_ && quick_yields_.exchange(0, std::memory_order_relaxed) >= enough_) {
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
  /// Declares as known that no thread computes there, whatever is observed.
  void disregard(bool known) noexcept {
    disregarded_.store(known, std::memory_order_relaxed);
    if (known) until_.store(0, std::memory_order_relaxed);
  }
  /// Returns how often contention was seen.
  std::uint64_t times() const noexcept { return times_.load(std::memory_order_relaxed); }
  bool holds(std::uint64_t now) const noexcept {
    return assumed_.load(std::memory_order_relaxed) || now < until_.load(std::memory_order_relaxed);
  }
  /// Records a yield that lost no time slice.
  void note_quick_yield() noexcept {
    if (!doubts_) return;
    const unsigned before = quick_yields_.load(std::memory_order_relaxed);
    if (before < enough_) {
      quick_yields_.store(before + 1, std::memory_order_relaxed);
    } else {
      credit_.store(yields_unwatched_, std::memory_order_relaxed);
    }
  }
  /// Yields, if yields return soon as far as is known; returns false if they do not. It reads the clock only now and
  /// then, because that costs a considerable part of a poll. It must read it sometimes, because others may begin to
  /// compute.
  bool yields(Platform& platform) noexcept {
    if (seen_.load(std::memory_order_relaxed) || assumed_.load(std::memory_order_relaxed)) return false;
    const unsigned left = credit_.load(std::memory_order_relaxed);
    if (left == 0) return yields_watched(platform);
    credit_.store(left - 1, std::memory_order_relaxed);
    platform.yield();
    return true;
  }
  /// Declares that ranks share the cores. Before any other use.
  void doubt() noexcept { doubts_ = true; }
  /// Declares contention as known, without observation. Before any other use.
  void assume() noexcept { assumed_.store(true, std::memory_order_relaxed); }
  /// Sets the unit on which the polling thread sleeps under contention (OS index; -1: anywhere). Otherwise unbound
  /// threads of several ranks would meet on one core, wake there each time, and slow down one rank for all.
  void prefer(int unit) noexcept { home_.store(unit, std::memory_order_relaxed); }
  /// Moves the calling thread to its preferred unit before it sleeps; no other thread may call this. It will wake
  /// there, unless another core is idle then.
  void return_to_home_unit(Platform& platform) noexcept {
    const int home = home_.load(std::memory_order_relaxed);
    if (home >= 0 && platform.current_unit() != home) move(platform, home);
  }
  /// Moves the calling thread to its share of the units (Platform::share_of_units), where ranks fill the host. The
  /// thread also returns there now and then when it yields. The scheduler leaves ranks that yield to each other on the
  /// unit where they woke, for seconds. That may be one unit for all, beside an idle one. Each time that the thread was
  /// moved away, the returns become rarer, because the move may have its reason. Call it once.
  void pin_to_share(Platform& platform, unsigned share) noexcept;
  /// Returns the thread to its share if that is due. Called between two polls, because a return takes much longer than
  /// a poll.
  void return_to_share_if_due(Platform& platform, std::uint64_t now) noexcept {
    // Workers run before the first thread is pinned. The acquire pairs with the release in pin_to_share(), so that they
    // see the rest of what it wrote.
    if (now >= next_return_.load(std::memory_order_acquire)) [[unlikely]]
      return_to_share(platform, now);
  }
  /// Called when a thread begins to wait; `alone`: no other waiting thread is on its core. Costs nothing while there is
  /// no contention.
  void follow(Platform& platform, bool alone) noexcept {
    if (seen_.load(std::memory_order_relaxed) || usual_slice != 0) [[unlikely]]
      change_turns(platform, alone);
  }

 private:
  /// The calling thread's usual slice while it has a shorter one; 0: it has not.
  static constinit thread_local std::uint64_t usual_slice __attribute__((tls_model("initial-exec")));
  void change_turns(Platform& platform, bool alone) noexcept;
  bool yields_watched(Platform& platform) noexcept;
  void move(Platform& platform, int home) noexcept;
  void return_to_share(Platform& platform, std::uint64_t now) noexcept;

  static constexpr unsigned enough_ = 8, yields_unwatched_ = 16;

  std::atomic<bool> seen_{false}, assumed_{false}, disregarded_{false};
  bool doubts_ = false;
  std::atomic<unsigned> quick_yields_{enough_}, credit_{0};  ///< yields since a lost slice; yields not to be timed
  std::atomic<int> home_{-1};
  std::uint64_t not_before_ = 0;  ///< earliest time of the next move
  std::atomic<std::uint64_t> next_return_{~std::uint64_t{0}};
  const void* pinned_thread_ = nullptr;  ///< the pinned thread, its share and its unit: constant from then on
  unsigned share_ = 0;
  int unit_ = -1;
  std::uint64_t between_returns_ = 5'000'000;
  std::atomic<std::uint64_t> until_{0}, span_{10'000'000}, times_{0};
};

/// Learns for how long it pays off to yield before a sleep. A thread that is woken soon after it fell asleep should
/// have gone on yielding. Where ranks share cores, a sleep costs each message a system call and a wake-up. The next
/// messages then come so late that all ranks fall asleep again. Any thread; a lost update costs only time.
class AdaptiveYield {
 public:
  /// Records how long a thread slept after it had yielded.
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
    bool heeds_contention = true;  ///< false: the thread that has the core is awaited, or advances what is
  };

  /// Without `adaptive_yield`, the budget is used as it is.
  Idle(Platform& platform, Budget budget, CpuContention& contention, const AdaptiveYield* adaptive_yield = nullptr)
      : platform_(platform), budget_(budget), contention_(contention), adaptive_yield_(adaptive_yield) {}

  /// Records that the last poll did something.
  void worked() noexcept { idle_since_ = 0, turns_ = 0; }

  /// Decides what to do after a poll that found nothing. Pauses or yields itself; the caller does the sleeping.
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
      if (now - last_turn_ > CpuContention::slice_ns) contention_.seen(now);
    }
    last_turn_ = now;
    const std::uint64_t idle = now - idle_since_;
    const std::uint64_t spin = now < oversubscribed_until_ ? 0 : budget_.spin_ns;
    if (idle < spin) {
      last_ = Action::spin;
      platform_.relax();
    } else if (idle < spin + yields_for() && !(budget_.heeds_contention && contention_.holds(now))) {
      last_ = Action::yield;
      platform_.yield();
      // Read the clock now: the next poll comes late, may find something to do, and then never asks here.
      last_turn_ = platform_.now_ns();
      contention_.return_to_share_if_due(platform_, last_turn_);
      if (!budget_.heeds_contention) return last_;
      last_turn_ - now > CpuContention::slice_ns ? contention_.seen(last_turn_) : contention_.note_quick_yield();
    } else {
      last_ = Action::sleep;
    }
    return last_;
  }

  std::uint64_t yields_for() const noexcept {
    return adaptive_yield_ == nullptr ? budget_.yield_ns : adaptive_yield_->scaled(budget_.yield_ns);
  }

  Platform& platform_;
  Budget budget_;
  CpuContention& contention_;
  const AdaptiveYield* adaptive_yield_;
  std::uint64_t idle_since_ = 0, last_turn_ = 0, oversubscribed_until_ = 0;
  unsigned turns_ = 0;
  Action last_ = Action::spin;
};

}  // namespace canele::ltask
