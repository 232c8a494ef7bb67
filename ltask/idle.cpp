// SPDX-License-Identifier: BSD-3-Clause
//
// Shorter time slices for threads that wait where others compute; any thread.
//
// A thread keeps its short slices until it waits again after the contention has ended. Threads that it starts meanwhile
// have them, too. (SCHED_FLAG_RESET_ON_FORK could not be undone without privileges.)
#include "ltask/idle.hpp"

#include <algorithm>
#include <utility>

namespace canele::ltask {

constinit thread_local std::uint64_t CpuContention::usual_slice = 0;

void CpuContention::change_turns(Platform& platform, bool alone) noexcept {
  constexpr std::uint64_t short_ns = 100'000;  // the shortest slice that Linux gives
  const bool on = platform.now_ns() < until_.load(std::memory_order_relaxed);
  if (!on) seen_.store(false, std::memory_order_relaxed);
  const bool wanted = on && alone;
  if (wanted && usual_slice == 0) usual_slice = platform.set_slice(short_ns);
  if (!wanted && usual_slice != 0) platform.set_slice(std::exchange(usual_slice, 0));
}

bool CpuContention::yields_watched(Platform& platform) noexcept {
  const std::uint64_t before = platform.now_ns();
  platform.yield();
  const std::uint64_t now = platform.now_ns();
  now - before > slice_ns ? seen(now) : note_quick_yield();
  return_to_share_if_due(platform, now);
  return true;
}

void CpuContention::pin_to_share(Platform& platform, unsigned share) noexcept {
  share_ = share;
  pinned_thread_ = platform.this_thread();
  unit_ = platform.share_of_units(share);
  if (unit_ < 0) return;
  platform.move_to_unit(unit_);
  next_return_.store(platform.now_ns() + between_returns_, std::memory_order_release);
}

void CpuContention::return_to_share(Platform& platform, std::uint64_t now) noexcept {
  constexpr std::uint64_t most = 1'000'000'000;
  if (platform.this_thread() != pinned_thread_) return;
  const bool away = platform.current_unit() != unit_;
  if (away) between_returns_ = std::min(2 * between_returns_, most);
  next_return_.store(now + between_returns_, std::memory_order_relaxed);
  // A thread that has been pinned since then stays where it is.
  if (away && platform.share_of_units(share_) == unit_) platform.move_to_unit(unit_);
}

void CpuContention::move(Platform& platform, int home) noexcept {
  constexpr std::uint64_t interval_ns = 10'000'000;  // a move takes much longer than a poll
  const std::uint64_t now = platform.now_ns();
  if (now < not_before_ || !holds(now)) return;
  not_before_ = now + interval_ns;
  platform.move_to_unit(home);
}

}  // namespace canele::ltask
