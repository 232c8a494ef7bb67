// SPDX-License-Identifier: BSD-3-Clause
//
// Summons: how one thread waits until others have something for it, where asking whether it waits costs them a load.
//
// Who: the helper waits, whoever leaves work summons.
// Threads: one waits; any summon.
// Surprise: who summons does not fence, so the two might miss each other: it reads "does not wait" before its work is
//     seen. Who waits fences for both, then looks for work once more (asymmetric fences, as in submit_lock.hpp). So it
//     is for waits that are rare beside the work.
#pragma once

#include <atomic>
#include <cstdint>

#include "ltask/asymmetric.hpp"
#include "ltask/platform.hpp"

namespace canele::ltask {

/// Fences: AsymmetricFences, or what a test has in their place.
template <typename Fences>
class BasicSummons {
 public:
  /// Somebody waits, or wants a turn made. Ask after leaving work. One plain load.
  bool calls() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) != State::silent;
  }
  /// Somebody waits. Ask after leaving work.
  bool awaited() const noexcept {
    Fences::light();
    return state_.load(std::memory_order_relaxed) == State::awaited;
  }
  /// Ends a wait, if there is one. True: a turn is asked for instead.
  bool summon(Platform& platform) noexcept {
    const State was = state_.exchange(State::silent, std::memory_order_acq_rel);
    if (was == State::awaited) rouse(platform);
    return was == State::turn_wanted;
  }
  /// For who waits here at other times: whoever leaves work next shall make a turn.
  void ask_for_turn() noexcept { state_.store(State::turn_wanted, std::memory_order_relaxed); }
  /// Ends a wait, or the next one.
  void rouse(Platform& platform) noexcept {
    called_.store(1, std::memory_order_release);
    platform.unpark(called_);
  }

  /// Waits for a summons, at most timeout_ns, if nothing_to_do() still holds. Only where the fences are available.
  template <typename NothingToDo>
  void await(Platform& platform, std::uint64_t timeout_ns, NothingToDo nothing_to_do) {
    state_.store(State::awaited, std::memory_order_seq_cst);
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
