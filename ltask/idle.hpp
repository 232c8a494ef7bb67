// SPDX-License-Identifier: BSD-3-Clause
//
// Idle: what a thread that polls does after a turn that found nothing: spin, yield, or sleep.
//
// Who: the worker, and a waiter that polls.
// Threads: one object per polling thread and wait.
// Surprise: budgets are times, not turns; and a hole in one's own spin loop (more than 50 µs between two turns)
//     means that others want the core: the spin budget is then zero for a while. With other runnable threads on the
//     core a yield costs under 1 µs, a sleep and wake-up across cores thirty.
#pragma once

#include <cstdint>

#include "ltask/platform.hpp"

namespace canele::ltask {

class Idle {
 public:
  enum class Action { spin, yield, sleep };

  struct Budget {
    std::uint64_t spin_ns = 20'000;
    std::uint64_t yield_ns = 100'000;
  };

  Idle(Platform& platform, Budget budget) : platform_(platform), budget_(budget) {}

  /// The last turn did something.
  void worked() noexcept { idle_since_ = 0, turns_ = 0; }

  /// The last turn found nothing: what now? Pauses or yields itself; the caller does the sleeping.
  Action next() noexcept {
    if (idle_since_ != 0 && (++turns_ & 15u) != 0 && last_ == Action::spin) {
      platform_.relax();
      return last_;
    }
    return decide(platform_.now_ns());
  }

 private:
  static constexpr std::uint64_t hole_ns = 50'000, oversubscribed_for_ns = 10'000'000;

  Action decide(std::uint64_t now) noexcept {
    if (idle_since_ == 0) {
      idle_since_ = now;
    } else if (last_ == Action::spin && now - last_turn_ > hole_ns) {
      oversubscribed_until_ = now + oversubscribed_for_ns;
    }
    last_turn_ = now;
    const std::uint64_t idle = now - idle_since_;
    const std::uint64_t spin = now < oversubscribed_until_ ? 0 : budget_.spin_ns;
    if (idle < spin) {
      last_ = Action::spin;
      platform_.relax();
    } else if (idle < spin + budget_.yield_ns) {
      last_ = Action::yield;
      platform_.yield();
    } else {
      last_ = Action::sleep;
    }
    return last_;
  }

  Platform& platform_;
  Budget budget_;
  std::uint64_t idle_since_ = 0, last_turn_ = 0, oversubscribed_until_ = 0;
  unsigned turns_ = 0;
  Action last_ = Action::spin;
};

}  // namespace canele::ltask
