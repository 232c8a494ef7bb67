// SPDX-License-Identifier: BSD-3-Clause
//
// EventCount: lets one thread wait until other threads have work for it. Asking whether that thread waits costs the
// others one load.
//
// The on-demand thread waits; threads that leave work notify it. One thread waits; any thread notifies.
//
// A notifying thread executes no fence, so the two sides might miss each other: it could read "does not wait" before
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
class BasicEventCount {
 public:
  /// Returns whether a thread waits, or wants another one to make a step. Ask after leaving work. One plain load.
  bool wants_notify() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) != State::silent;
  }
  /// Returns whether a thread waits. Ask after leaving work.
  bool has_waiter() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) == State::waiting;
  }
  /// Ends a wait, if there is one. Returns true if a step of the caller is wanted instead.
  bool notify(Platform& platform) noexcept {
    const State was = state_.exchange(State::silent, std::memory_order_acq_rel);
    if (was == State::waiting) wake(platform);
    return was == State::turn_wanted;
  }
  /// Asks the next thread that leaves work to make a step. Called by the thread that waits here at other times.
  void ask_for_turn() noexcept { state_.store(State::turn_wanted, std::memory_order_relaxed); }
  /// Ends the current wait, or the next one.
  void wake(Platform& platform) noexcept {
    notified_.store(1, std::memory_order_release);  // partner: the exchange in park()
    platform.unpark(notified_);
  }

  /// Waits for a notification, at most timeout_ns, if nothing_to_do() still holds after the fence. Only where the
  /// fences are available.
  template <typename NothingToDo>
  void await(Platform& platform, std::uint64_t timeout_ns, NothingToDo nothing_to_do) {
    state_.store(State::waiting, std::memory_order_seq_cst);
    // partner: the light fences of the readers. Either they see the state, or nothing_to_do() sees their work.
    Fences::heavy();
    if (nothing_to_do()) park(platform, timeout_ns);
    state_.store(State::silent, std::memory_order_relaxed);
  }

 private:
  enum class State : std::uint8_t { silent, waiting, turn_wanted };
  void park(Platform& platform, std::uint64_t ns) noexcept {
    platform.park(notified_, 0, ns);
    notified_.exchange(0, std::memory_order_acq_rel);
  }

  std::atomic<State> state_{State::silent};
  std::atomic<std::uint32_t> notified_{0};
};
using EventCount = BasicEventCount<AsymmetricFences>;

}  // namespace canele::ltask
