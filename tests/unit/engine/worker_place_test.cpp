// SPDX-License-Identifier: BSD-3-Clause
//
// Where workers run by a policy, on made-up machines. One thread.
#include "comm/api/worker_place.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace canele::comm::api {
namespace {

using collectives::placement::Policy;
using ltask::Topology;

/// Two NUMA nodes of eight units: 0-7, 8-15. Ranks are pinned to all but 3, 7, 11 and 15.
constexpr const char* two_nodes = "numa:2 core:8 pu:1";
bool is_computed_on(int unit) { return unit % 4 != 3; }

std::vector<int> units_of(Policy policy, const std::vector<int>& pinned_to) {
  std::vector<int> units;
  for (const int unit : pinned_to) {
    const std::vector<int> own = {unit};
    units.push_back(unit_by(policy, Topology(two_nodes, own), {0, 12}, is_computed_on).value_or(-1));
  }
  return units;
}

TEST(WorkerPlace, APinnedRankGoesByTheUnitsThatItsNodeHasLeft) {
  const std::vector<int> first = {0, 1, 2, 4, 5, 6}, second = {8, 9, 10, 12, 13, 14};
  EXPECT_EQ(units_of(Policy::bind, first), first);
  EXPECT_EQ(units_of(Policy::numa, first), (std::vector<int>{3, 3, 7, 7, 7, 7})) << "as the formula";
  EXPECT_EQ(units_of(Policy::odd_even, first), (std::vector<int>{3, 7, 3, 7, 3, 7}));
  EXPECT_EQ(units_of(Policy::odd_even, second), (std::vector<int>{11, 15, 11, 15, 11, 15})) << "in its own node";
}

TEST(WorkerPlace, ARankOfSeveralUnitsIsOneNeighbour) {
  const std::vector<std::vector<int>> ranks = {{0, 1}, {2, 3}, {4, 5}};
  std::vector<int> units;
  for (const std::vector<int>& own : ranks) {
    units.push_back(
        *unit_by(Policy::odd_even, Topology("numa:1 core:8 pu:1", own), {0, 3}, [](int unit) { return unit < 6; }));
  }
  EXPECT_EQ(units, (std::vector<int>{6, 7, 6}));
}

TEST(WorkerPlace, WithNothingLeftItStaysWithItsRank) {
  const std::vector<int> own = {2};
  for (const Policy policy : {Policy::bind, Policy::numa, Policy::odd_even})
    EXPECT_EQ(unit_by(policy, Topology("core:4 pu:1", own), {2, 4}, [](int) { return true; }), 2);
}

TEST(WorkerPlace, ProgramsThatAreNotPinnedGoByTheirNumber) {
  const Topology machine("core:8 pu:1", {});
  std::vector<int> odd, numa;
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    odd.push_back(*unit_by(Policy::odd_even, machine, {rank, 6}, [](int) { return false; }));
    numa.push_back(*unit_by(Policy::numa, machine, {rank, 6}, [](int) { return false; }));
  }
  EXPECT_EQ(odd, (std::vector<int>{3, 7, 3, 7, 3, 7}));
  EXPECT_EQ(numa, (std::vector<int>{3, 3, 7, 7, 7, 7}));
  EXPECT_EQ(*unit_by(Policy::odd_even, machine, {11, 12}, [](int) { return false; }), 3) << "more ranks than units";
}

}  // namespace
}  // namespace canele::comm::api
