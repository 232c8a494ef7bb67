// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules of an exchange with neighbours: which ones wait for each rank that gets a message from them. One thread.
#include <gtest/gtest.h>

#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::comm::collectives {
namespace {

using Edges = std::vector<canele_edge_t>;

bool waits(const Edges& sends, const Edges& receives) {
  constexpr int rank = 2;
  return neighbor_exchange(rank, sends, receives, 0).waits_for_receivers();
}

TEST(NeighborExchange, WaitsForItsReceiversIfEachOfThemSends) {
  EXPECT_TRUE(waits({{1, 0, 8}, {3, 8, 8}}, {{1, 0, 8}, {3, 8, 8}})) << "a ring";
  EXPECT_TRUE(waits({{1, 0, 8}, {1, 8, 8}}, {{1, 0, 100}})) << "two edges one way, one of another length back";
  EXPECT_TRUE(waits({{1, 0, 8}}, {{1, 0, 8}, {3, 8, 8}})) << "another rank sends, too";
  EXPECT_TRUE(waits({{1, 0, 8}, {2, 8, 8}}, {{1, 0, 8}, {2, 8, 8}})) << "an edge to itself";
  EXPECT_TRUE(waits({{1, 0, 8}, {3, 8, 0}}, {{1, 0, 8}})) << "an edge without a message";
  EXPECT_FALSE(waits({{1, 0, 8}, {3, 8, 8}}, {{1, 0, 8}})) << "3 may come later";
  EXPECT_FALSE(waits({{1, 0, 8}}, {{1, 0, 0}})) << "no message comes from 1";
  EXPECT_FALSE(waits({{3, 0, 8}}, {{1, 0, 8}})) << "a ring that goes one way";
}

}  // namespace
}  // namespace canele::comm::collectives
