// SPDX-License-Identifier: BSD-3-Clause
//
// Summons: lets one thread wait until other threads have work for it. Asking whether that thread waits costs the others
// one load.
//
// The helper waits; threads that leave work summon it. One thread waits; any thread summons.
//
// A summoning thread executes no fence, so the two sides might miss each other: it could read "does not wait" before
// its work is visible. The waiting thread therefore executes a fence for both sides, and then checks for work once more
// (asymmetric fences, as in submit_lock.hpp). So this is for waits that are rare in comparison with the work.
#pragma once

#include <atomic>
#include <cstdint>

#include "ltask/asymmetric.hpp"
#include "ltask/platform.hpp"

namespace canele::ltask {

/// Fences: AsymmetricFences, or a test's replacement.
template <typename Fences>
class BasicSummons {
 public:
  /// Returns whether a thread waits, or wants another one to make a step. Ask after leaving work. One plain load.
  bool calls() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) != State::silent;
  }
  /// Returns whether a thread waits. Ask after leaving work.
  bool awaited() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) == State::awaited;
  }
  /// Ends a wait, if there is one. Returns true if a step of the caller is wanted instead.
  bool summon(Platform& platform) noexcept {
    const State was = state_.exchange(State::silent, std::memory_order_acq_rel);
    if (was == State::awaited) rouse(platform);
    return was == State::turn_wanted;
  }
  /// Asks the next thread that leaves work to make a step. Called by the thread that waits here at other times.
  void ask_for_turn() noexcept { state_.store(State::turn_wanted, std::memory_order_relaxed); }
  /// Ends the current wait, or the next one.
  void rouse(Platform& platform) noexcept {
    called_.store(1, std::memory_order_release);  // partner: the exchange in doze()
    platform.unpark(called_);
  }

  /// Waits for a summons, at most timeout_ns, if nothing_to_do() still holds after the fence. Only where the fences are
  /// available.
  template <typename NothingToDo>
  void await(Platform& platform, std::uint64_t timeout_ns, NothingToDo nothing_to_do) {
    state_.store(State::awaited, std::memory_order_seq_cst);
    // partner: the light fence in calls() and awaited(). Either they see the state, or nothing_to_do() sees their work.
    Fences::heavy();
    if (nothing_to_do()) doze(platform, timeout_ns);
    state_.store(State::silent, std::memory_order_relaxed);
  }

 private:
  enum class State : std::uint8_t { silent, awaited, turn_wanted };
  void doze(Platform& platform, std::uint64_t ns) noexcept {
    platform.park(called_, 0, ns);
    called_.exchange(0, std::memory_order_acq_rel);
  }

  std::atomic<State> state_{State::silent};
  std::atomic<std::uint32_t> called_{0};
};
using Summons = BasicSummons<AsymmetricFences>;

}  // namespace canele::ltask
