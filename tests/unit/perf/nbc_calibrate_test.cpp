// SPDX-License-Identifier: BSD-3-Clause
//
// Calibration of canele-perf nbc, on times that are computed. One thread.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/perf/nbc/calibrate.hpp"

namespace canele::perf::nbc {
namespace {

TEST(Calibrate, ComesWithinATenthWhateverTheCurve) {
  const auto straight = [](std::uint64_t amount) { return 2.5 * static_cast<double>(amount); };
  const auto offset = [](std::uint64_t amount) { return 90 + 0.01 * static_cast<double>(amount); };
  const auto bent = [](std::uint64_t amount) { return std::pow(static_cast<double>(amount), 1.3) / 100; };
  for (const double target : {100.0, 512.0, 1e5}) {
    for (const std::uint64_t guess : {1u, 50u, 1'000'000u}) {
      const Range any{1, 1u << 30};
      EXPECT_TRUE(within_tenth(calibrate(target, guess, any, straight).time, target)) << target << " from " << guess;
      EXPECT_TRUE(within_tenth(calibrate(target, guess, any, offset).time, target)) << target << " from " << guess;
      EXPECT_TRUE(within_tenth(calibrate(target, guess, any, bent).time, target)) << target << " from " << guess;
    }
  }
}

TEST(Calibrate, KeepsTheNearestWhereTimeJumps) {
  const auto jump = [](std::uint64_t amount) { return amount < 1000 ? 10.0 : 100.0; };
  const Calibrated found = calibrate(60, 1, {1, 1u << 20}, jump);
  EXPECT_EQ(found.time, 100);
  EXPECT_GE(found.amount, 1000u);
}

TEST(Calibrate, StopsAtTheLimits) {
  const auto straight = [](std::uint64_t amount) { return static_cast<double>(amount); };
  EXPECT_EQ(calibrate(1000, 10, {1, 100}, straight).amount, 100u);
  EXPECT_EQ(calibrate(5, 500, {50, 1000}, straight).amount, 50u);
}

TEST(Calibrate, MeasuresEachAmountThatItReturns) {
  int calls = 0;
  const Calibrated found = calibrate(100, 100, {1, 1000}, [&calls](std::uint64_t amount) {
    ++calls;
    return static_cast<double>(amount);
  });
  EXPECT_EQ(found.amount, 100u);
  EXPECT_EQ(calls, 1);
}

TEST(Calibrate, LooksAgainAfterASlowPhase) {
  int calls = 0;
  const auto slow_at_first = [&calls](std::uint64_t amount) {
    return static_cast<double>(amount) * (++calls == 1 ? 2 : 1);
  };
  const Calibrated found = calibrate_and_confirm(100, 50, {1, 1000}, slow_at_first);
  EXPECT_EQ(found.amount, 100u);
  EXPECT_EQ(found.time, 100);
}

}  // namespace
}  // namespace canele::perf::nbc
