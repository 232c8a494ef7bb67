// SPDX-License-Identifier: BSD-3-Clause
//
// Ranges that arrive out of order, beside a plain array of bytes that have arrived.
#include "comm/state/early_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace canele::comm {
namespace {

TEST(EarlyRanges, TellHowFarAllBytesHaveArrived) {
  EarlyRanges early;
  EXPECT_EQ(early.add(0, 10, 20), 0u);
  EXPECT_EQ(early.add(0, 30, 40), 0u);
  EXPECT_EQ(early.size(), 2u);
  EXPECT_EQ(early.add(0, 0, 10), 20u);
  EXPECT_EQ(early.add(20, 20, 30), 40u);
  EXPECT_TRUE(early.empty());
}

TEST(EarlyRanges, AgreeWithAnArrayOfBytes) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t length = 1 + random() % 64;
    std::vector<bool> there(length);
    EarlyRanges early;
    std::uint64_t prefix = 0;
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t begin = random() % length, end = begin + 1 + random() % (length - begin);
      bool any = false;
      for (std::uint64_t at = std::max(begin, prefix); at < end; ++at) any |= there[at];
      if (end > prefix) {
        ASSERT_EQ(early.overlap(std::max(begin, prefix), end), any) << "seed 20261130, round " << round;
      }
      for (std::uint64_t at = begin; at < end; ++at) there[at] = true;
      prefix = early.add(prefix, begin, end);
      std::uint64_t expected = 0;
      while (expected < length && there[expected]) ++expected;
      ASSERT_EQ(prefix, expected) << "seed 20261130, round " << round << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace canele::comm
