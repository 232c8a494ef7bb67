// SPDX-License-Identifier: BSD-3-Clause
//
// Shorter turns for threads that wait where others compute. Threads: any.
// Surprise: a thread keeps its short turns until it waits again after the pressure is over; and threads that it starts
//     meanwhile have them, too (SCHED_FLAG_RESET_ON_FORK could not be taken back without privileges).
#include "ltask/idle.hpp"

#include <utility>

namespace canele::ltask {

constinit thread_local std::uint64_t Pressure::usual_slice = 0;

void Pressure::change_turns(Platform& platform, bool alone) noexcept {
  constexpr std::uint64_t short_ns = 100'000;  // the shortest that Linux gives
  const bool on = platform.now_ns() < until_.load(std::memory_order_relaxed);
  if (!on) seen_.store(false, std::memory_order_relaxed);
  const bool wanted = on && alone;
  if (wanted && usual_slice == 0) usual_slice = platform.set_slice(short_ns);
  if (!wanted && usual_slice != 0) platform.set_slice(std::exchange(usual_slice, 0));
}

bool Pressure::yields_watched(Platform& platform) noexcept {
  const std::uint64_t before = platform.now_ns();
  platform.yield();
  const std::uint64_t now = platform.now_ns();
  now - before > slice_ns ? seen(now) : came_back();
  return true;
}

void Pressure::move(Platform& platform, int home) noexcept {
  constexpr std::uint64_t interval_ns = 10'000'000;  // a move takes some 20 us
  const std::uint64_t now = platform.now_ns();
  if (now < not_before_ || !holds(now)) return;
  not_before_ = now + interval_ns;
  platform.move_to_unit(home);
}

}  // namespace canele::ltask
