// SPDX-License-Identifier: BSD-3-Clause
//
// The quantiles of canele-perf. One thread.
//
// The values are those of numpy.quantile's default method, so that other tools agree.
#include "apps/perf/statistics.hpp"

#include <gtest/gtest.h>

namespace canele::perf {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 0.1), 10);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.9), 3.7);
}

TEST(Quantile, EndsAreTheExtremes) {
  EXPECT_DOUBLE_EQ(quantile({5, 9, 7}, 0), 5);
  EXPECT_DOUBLE_EQ(quantile({5, 9, 7}, 1), 9);
  EXPECT_DOUBLE_EQ(quantile({5}, 0.37), 5);
}

TEST(Summary, IsMedianAndPercentiles) {
  const Summary summary = summarise({9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10});
  EXPECT_DOUBLE_EQ(summary.median, 5);
  EXPECT_DOUBLE_EQ(summary.p10, 1);
  EXPECT_DOUBLE_EQ(summary.p90, 9);
}

}  // namespace
}  // namespace canele::perf
