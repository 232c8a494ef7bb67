// SPDX-License-Identifier: BSD-3-Clause
//
// The model of split trees gives what its authors found on 64 cores. One thread.
#include "comm/collectives/split_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace canele::comm::collectives::split_tree {
namespace {

TEST(SplitTree, CountsMessagesByLevel) {
  EXPECT_EQ(height(1), 0U);
  EXPECT_EQ(height(64), 6U);
  EXPECT_EQ(height(65), 7U);
  for (std::uint32_t level = 1; level <= 6; ++level) EXPECT_EQ(messages_on(64, level), 64U >> level);
  for (std::uint32_t ranks = 1; ranks < 200; ++ranks) {
    std::uint32_t all = 0;
    for (std::uint32_t level = 1; level <= height(ranks); ++level) all += messages_on(ranks, level);
    EXPECT_EQ(all, ranks - 1) << "all ranks but the root sends once";
  }
}

TEST(SplitTree, FindsTheBestOfAllAt51RanksOf64) {
  double least = 1e9;
  std::uint32_t best = 0;
  for (std::uint32_t ranks = 1; ranks < 64; ++ranks) {
    const double time = overlapped_time({64, ranks}, best_split({64, ranks}));
    if (time < least) {
      least = time;
      best = ranks;
    }
  }
  EXPECT_EQ(best, 51U);
  EXPECT_EQ(best_split({64, 51}), 0U);
  EXPECT_NEAR(least, 7.53, 0.005);
}

TEST(SplitTree, SplitsMoreTheFewerCoresAreLeft) {
  for (std::uint32_t ranks = 33; ranks < 64; ++ranks) {
    const std::uint32_t expected = ranks < 52 ? 0 : ranks < 58 ? 1 : ranks < 62 ? 2 : 3;
    EXPECT_EQ(best_split({64, ranks}), expected) << ranks << " ranks";
  }
  EXPECT_EQ(best_split({64, 57}), 1U);
  EXPECT_EQ(best_split({64, 60}), 2U);
  EXPECT_EQ(best_split({64, 62}), 3U);
}

TEST(SplitTree, WithoutSplitAllIsHiddenAndWithAllLevelsItIsBlocking) {
  const Node node{64, 60};
  EXPECT_DOUBLE_EQ(blocking_time(60), 6);
  EXPECT_DOUBLE_EQ(nonblocking_time(node, height(60)), blocking_time(60));
  EXPECT_DOUBLE_EQ(nonblocking_time(node, 99), blocking_time(60));
  // 30 + 15 + 7 + 4 + 2 + 1 messages on four cores
  EXPECT_DOUBLE_EQ(nonblocking_time(node, 0), 8 + 4 + 2 + 1 + 1 + 1);
  EXPECT_DOUBLE_EQ(nonblocking_time(node, 2), 2 + 2 + 1 + 1 + 1);
  EXPECT_DOUBLE_EQ(computation(node), 64.0 / 60 * 6);
  EXPECT_DOUBLE_EQ(overlapped_time(node, 0), 17);
  EXPECT_DOUBLE_EQ(overlapped_time(node, 2), 2 + std::max(6.4, 5.0));
  EXPECT_DOUBLE_EQ(overlapped_time(node, 6), 6 + 6.4) << "nothing is hidden";
}

TEST(SplitTree, MessagesOfGathersDoubleFromLevelToLevel) {
  const Node node{64, 60};
  EXPECT_DOUBLE_EQ(blocking_time(60, Sizes::doubling), 63);
  EXPECT_DOUBLE_EQ(nonblocking_time(node, 0, Sizes::doubling), 8 * 1 + 4 * 2 + 2 * 4 + 1 * 8 + 1 * 16 + 1 * 32);
  EXPECT_DOUBLE_EQ(nonblocking_time(node, 2, Sizes::doubling), 1 + 2 + 2 * 4 + 8 + 16 + 32);
  EXPECT_DOUBLE_EQ(overlapped_time(node, 2, Sizes::doubling), 3 + std::max(64.0 / 60 * 63, 64.0));
}

TEST(SplitTree, WithoutCoresForItTheApplicationDoesAll) {
  EXPECT_EQ(best_split({64, 64}), 6U);
  EXPECT_DOUBLE_EQ(nonblocking_time({64, 64}, 0), 6);
  EXPECT_DOUBLE_EQ(overlapped_time({64, 64}, 0), 12);
  EXPECT_EQ(best_split({1, 1}), 0U);
}

}  // namespace
}  // namespace canele::comm::collectives::split_tree
