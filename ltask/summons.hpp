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
  /// Somebody waits. Ask after leaving work.
  bool awaited() const noexcept {
    Fences::light();
    return awaited_.load(std::memory_order_relaxed);
  }
  /// Ends a wait, if there is one.
  void summon(Platform& platform) noexcept {
    if (awaited_.exchange(false, std::memory_order_acq_rel)) rouse(platform);
  }
  /// Ends a wait, or the next one.
  void rouse(Platform& platform) noexcept {
    called_.store(1, std::memory_order_release);
    platform.unpark(called_);
  }

  /// Waits for a summons, at most timeout_ns, if nothing_to_do() still holds. Only where the fences are available.
  template <typename NothingToDo>
  void await(Platform& platform, std::uint64_t timeout_ns, NothingToDo nothing_to_do) {
    awaited_.store(true, std::memory_order_seq_cst);
    Fences::heavy();
    if (nothing_to_do()) doze(platform, timeout_ns);
    awaited_.store(false, std::memory_order_relaxed);
  }

 private:
  void doze(Platform& platform, std::uint64_t ns) noexcept {
    platform.park(called_, 0, ns);
    called_.exchange(0, std::memory_order_acq_rel);
  }

  std::atomic<bool> awaited_{false};
  std::atomic<std::uint32_t> called_{0};
};
using Summons = BasicSummons<AsymmetricFences>;

}  // namespace canele::ltask
