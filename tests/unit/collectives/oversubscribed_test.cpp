// SPDX-License-Identifier: BSD-3-Clause
//
// The estimates for an oversubscribed host equal those of the schedules, and the chosen algorithms take few turns. One
// thread.
//
// Only powers of two are exact; see oversubscribed.cpp.
#include "comm/collectives/oversubscribed.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectives/clock.hpp"
#include "tests/unit/collectives/world.hpp"

namespace canele::comm::collectives::model {
namespace {

constexpr std::uint64_t block = 4096;

bool has_blocks(Operation operation) {
  return operation == Operation::allgather || operation == Operation::reduce_scatter;
}

Totals counted(const Call& call, const Choice& choice) {
  Totals totals;
  for (const Schedule& schedule : schedules_of(call, choice)) {
    for (const Step& step : schedule.steps()) {
      if (step.action == Action::send) totals.messages += 1, totals.bytes += static_cast<double>(step.from.length);
      if (step.action == Action::combine || step.action == Action::append)
        totals.work += static_cast<double>(step.to.length);
    }
  }
  return totals;
}

bool combines(Operation operation) {
  return operation == Operation::reduce || operation == Operation::allreduce || operation == Operation::reduce_scatter;
}

TEST(Oversubscribed, SumsAreThoseOfTheSchedules) {
  for (const Operation operation : every_operation) {
    for (int which = 1; which <= last_algorithm; ++which) {
      for (const int n : {2, 4, 8, 16}) {
        Choice asked;
        asked.algorithm = static_cast<Algorithm>(which);
        if (!has(operation, asked.algorithm)) continue;
        const Call call = collective(operation, n, block);
        const Choice choice = choose(call, asked, Network{150, 40, 10'000'000'000, 1});
        const double all = has_blocks(operation) ? double{block} * n : double{block};
        const Totals said = totals_of(call, choice, all, block), found = counted(call, choice);
        const std::string what = std::string(name_of(operation)) + " " + std::string(name_of(choice.algorithm)) + ", " +
                                 std::to_string(n) + " ranks";
        EXPECT_EQ(said.messages, found.messages) << what;
        EXPECT_EQ(said.bytes, found.bytes) << what;
        if (combines(operation)) {
          EXPECT_EQ(said.work, found.work) << what;
        }
      }
    }
  }
}

/// With two ranks a unit, every second turn ends a collective for one rank, which enters the next one at once.
TEST(Oversubscribed, EachTellsEachWhereThatSparesTurns) {
  const Network two_units{150, 40, 24'000'000'000, 2, 16'000}, enough{150, 40, 24'000'000'000, 4, 16'000};
  for (const Operation operation :
       {Operation::barrier, Operation::allreduce, Operation::allgather, Operation::reduce_scatter}) {
    EXPECT_EQ(choose(collective(operation, 4, 8), {}, two_units).algorithm, Algorithm::flat) << name_of(operation);
    EXPECT_NE(choose(collective(operation, 4, 8), {}, enough).algorithm, Algorithm::flat) << name_of(operation);
  }
}

TEST(Oversubscribed, WhatIsFetchedFromOnePlaceIsOneMessage) {
  const Network two_units{150, 40, 24'000'000'000, 2, 16'000}, enough{150, 40, 24'000'000'000, 8, 16'000};
  for (const Operation operation : {Operation::bcast, Operation::gather, Operation::scatter, Operation::allgather}) {
    EXPECT_EQ(choose(collective(operation, 8, 65'536), {}, two_units).piece, 0u) << name_of(operation);
    EXPECT_EQ(choose(collective(operation, 8, 65'536), {}, enough).piece, 16'000u) << name_of(operation);
  }
  EXPECT_EQ(choose(collective(Operation::allreduce, 4, 65'536), {}, two_units).algorithm, Algorithm::halving_doubling);
  EXPECT_EQ(choose(collective(Operation::allreduce, 4, 65'536), {}, two_units).piece, 16'000u) << "both ends wait";
}

TEST(Oversubscribed, NoBroadcastIsCutIntoSegmentsAndNoLimitHoldsUp) {
  const Network two_units{150, 40, 24'000'000'000, 2};
  for (const int n : {3, 4, 8}) {
    EXPECT_EQ(choose(collective(Operation::bcast, n, 1 << 20), {}, two_units).segment, 0u);
    EXPECT_EQ(choose(collective(Operation::scan, n, 1 << 20), {}, two_units).algorithm, Algorithm::chain);
    EXPECT_EQ(choose(collective(Operation::reduce, n, 1 << 20), {}, two_units).algorithm, Algorithm::chain);
    EXPECT_NE(choose(collective(Operation::allreduce, n, 1 << 20), {}, two_units).algorithm, Algorithm::recursive);
    EXPECT_GE(choose(collective(Operation::alltoall, n, 1 << 20), {}, two_units).inflight_limit,
              static_cast<unsigned>(n - 1));
  }
  for (const Operation operation : {Operation::barrier, Operation::allreduce, Operation::allgather}) {
    const Choice choice = choose(collective(operation, 8, 8), {}, two_units);
    EXPECT_EQ(choice.algorithm, Algorithm::two_phases) << name_of(operation) << ": one hears of all, and tells all";
    EXPECT_EQ(choice.radix, 8u) << name_of(operation);
  }
  const Network enough{150, 40, 10'000'000'000, 8};
  EXPECT_NE(choose(collective(Operation::bcast, 8, 1 << 20), {}, enough).segment, 0u) << "a core for each";
}

}  // namespace
}  // namespace canele::comm::collectives::model
