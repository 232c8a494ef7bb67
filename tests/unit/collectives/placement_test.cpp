// SPDX-License-Identifier: BSD-3-Clause
//
// Placement: communication cores are spread, and neighbours share them or not, as each policy says. One thread.
#include "comm/collectives/placement.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace canele::comm::collectives::placement {
namespace {

std::vector<std::uint32_t> all_of(Policy policy, std::uint32_t cores, std::uint32_t ranks) {
  std::vector<std::uint32_t> placed;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) placed.push_back(core_of(policy, cores, ranks, rank));
  return placed;
}

TEST(Placement, IsWhatTheFormulasSay) {
  using Cores = std::vector<std::uint32_t>;
  EXPECT_EQ(all_of(Policy::bind, 8, 6), (Cores{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(all_of(Policy::numa, 8, 6), (Cores{3, 3, 7, 7, 7, 7}));
  EXPECT_EQ(all_of(Policy::odd_even, 8, 6), (Cores{3, 7, 3, 7, 3, 7}));
  EXPECT_EQ(all_of(Policy::odd_even, 8, 5), (Cores{2, 5, 7, 2, 5})) << "8/3 is no whole number";
  EXPECT_EQ(name_of(Policy::odd_even), "odd-even");
}

TEST(Placement, UsesOnlyCoresThatAreLeftAndAllOfThemInTurn) {
  for (std::uint32_t cores = 1; cores <= 64; ++cores) {
    for (std::uint32_t ranks = 1; ranks <= cores; ++ranks) {
      const std::vector<std::uint32_t> own = all_of(Policy::bind, cores, ranks);
      const std::set<std::uint32_t> used(own.begin(), own.end());
      EXPECT_EQ(used.size(), ranks) << "a core of its own for each";
      EXPECT_LT(*used.rbegin(), cores);
      if (cores == ranks) continue;
      for (const Policy policy : {Policy::numa, Policy::odd_even}) {
        for (const std::uint32_t core : all_of(policy, cores, ranks)) {
          EXPECT_LT(core, cores);
          EXPECT_EQ(used.count(core), 0U) << ranks << " ranks on " << cores << " cores: " << core << " is taken";
        }
      }
    }
  }
}

TEST(Placement, NeighboursShareACoreByNumaAndNotByOddEven) {
  for (std::uint32_t ranks = 33; ranks <= 62; ++ranks) {
    const std::vector<std::uint32_t> numa = all_of(Policy::numa, 64, ranks), odd = all_of(Policy::odd_even, 64, ranks);
    std::uint32_t shared = 0;
    for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) {
      EXPECT_NE(odd[rank], odd[rank + 1]);
      shared += numa[rank] == numa[rank + 1] ? 1 : 0;
    }
    EXPECT_GE(shared, ranks - 1 - (64 - ranks));
  }
}

TEST(Placement, KeepsTheProgressionAtHomeIfNoCoreIsLeft) {
  for (const Policy policy : {Policy::bind, Policy::numa, Policy::odd_even}) {
    for (std::uint32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(core_of(policy, 8, 8, rank), rank);
  }
}

}  // namespace
}  // namespace canele::comm::collectives::placement
