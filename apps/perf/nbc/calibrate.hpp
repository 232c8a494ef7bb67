// SPDX-License-Identifier: BSD-3-Clause
//
// Calibration: finds the amount of something that takes a wanted time. One thread.
//
// nbc uses it for the size of a collective and for the work. Time may jump with the amount (if the protocol changes),
// so that no amount comes near. The nearest one is then kept, and all later computations use the measured time, not the
// wanted one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace canele::perf::nbc {

struct Range {
  std::uint64_t least, most;
};

struct Calibrated {
  std::uint64_t amount;
  double time;  ///< measured
};

inline bool within_tenth(double time, double target) { return std::abs(time - target) < 0.1 * target; }

/// Finds the amount. Time grows with the amount: in proportion at first, then between the nearest amounts that were too
/// small and too large.
template <typename Measure>
Calibrated calibrate(double target, std::uint64_t guess, Range allowed, Measure&& measure) {
  constexpr int most_tries = 12;
  double below = 0, above = 0;  // amounts; 0: none yet
  Calibrated best{0, 0};
  double amount = static_cast<double>(guess);
  for (int i = 0; i < most_tries; ++i) {
    const std::uint64_t now = std::clamp(static_cast<std::uint64_t>(amount), allowed.least, allowed.most);
    if (now == best.amount) break;  // a limit, or no amount is left between the bounds
    const double time = measure(now);
    if (best.amount == 0 || std::abs(time - target) < std::abs(best.time - target)) best = {now, time};
    if (within_tenth(time, target)) break;
    (time < target ? below : above) = static_cast<double>(now);
    amount = static_cast<double>(now) * target / time;
    if (below > 0 && above > 0 && (amount <= below || amount >= above)) amount = std::sqrt(below * above);
  }
  return best;
}

/// Calibrates until a second measurement agrees. A machine has slow phases, and the calibration may have hit one of
/// them.
template <typename Measure>
Calibrated calibrate_and_confirm(double target, std::uint64_t guess, Range allowed, Measure&& measure) {
  constexpr int most_tries = 3;
  Calibrated found = calibrate(target, guess, allowed, measure);
  for (int i = 1; i < most_tries && within_tenth(found.time, target); ++i) {
    const double time = measure(found.amount);
    if (within_tenth(time, target)) break;
    const double amount = static_cast<double>(found.amount) * target / time;
    found = calibrate(target, static_cast<std::uint64_t>(amount), allowed, measure);
  }
  return found;
}

}  // namespace canele::perf::nbc
