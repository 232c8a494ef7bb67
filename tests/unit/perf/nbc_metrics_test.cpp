// SPDX-License-Identifier: BSD-3-Clause
//
// The ratios of canele-perf nbc: the worked examples of their sources, the percentages that these print, the identity,
// the diagnosis.
//
// One thread. The rows of OMB and IMB are those of tables in the thesis, which prints the times and the percentages.
#include <gtest/gtest.h>

#include <vector>

#include "apps/perf/nbc/metrics.hpp"

namespace canele::perf::nbc {
namespace {

TEST(Overhead, IsZeroWhenTheShorterIsHiddenAndOneInSeries) {
  EXPECT_DOUBLE_EQ(r_overhead(1, {1, 1}), 0);
  EXPECT_DOUBLE_EQ(r_overhead(2, {1, 1}), 1);
  EXPECT_DOUBLE_EQ(r_overhead(4, {4, 1}), 0);
  EXPECT_DOUBLE_EQ(r_overhead(5, {4, 1}), 1);
  EXPECT_DOUBLE_EQ(r_overhead(5, {1, 4}), 1);
  EXPECT_DOUBLE_EQ(r_overhead(3, {1, 1}), 2);         // slower than in series
  EXPECT_NEAR(r_overhead(0.9, {1, 1}), -0.1, 1e-12);  // a reference was too slow
}

TEST(GlobalTime, TellsApartWhatAMeanWouldNot) {
  const std::vector<double> starts(4, 0), uneven = {20, 20, 10, 10}, even(4, 15);
  EXPECT_DOUBLE_EQ(global_time(starts, uneven), 20);
  EXPECT_DOUBLE_EQ(global_time(starts, even), 15);
}

TEST(GlobalTime, GoesFromTheFirstStartToTheLastEndOfDifferentRanks) {
  const std::vector<double> starts = {5, 3}, ends = {9, 7};
  EXPECT_DOUBLE_EQ(global_time(starts, ends), 6);
}

TEST(Ratios, OfOneRank) {
  const Phases rank{1, 12, 3};
  const References alone{10, 8};
  EXPECT_DOUBLE_EQ(r_comm(rank, alone), 0.5);
  EXPECT_DOUBLE_EQ(r_comp_slowdown(rank, alone), 1.2);
  EXPECT_DOUBLE_EQ(r_mpi_impact(768, 512), 1.5);
}

TEST(Ratios, AddUpToTheOverheadOfTheRank) {
  for (const References alone : {References{10, 8}, {8, 10}, {0.5, 700}, {1000, 3}}) {
    for (const Phases rank : {Phases{1, 12, 3}, {0.25, 8, 0}, {0, 900, 45}}) {
      EXPECT_NEAR(r_overhead_by_ratios(r_comp_slowdown(rank, alone), r_comm(rank, alone), alone),
                  r_overhead(rank.total(), alone), 1e-9);
    }
  }
}

TEST(Ratios, PerfectProgressLeavesWhatOutlastsTheComputation) {
  EXPECT_DOUBLE_EQ(ideal_r_comm({1, 4}), 0.75);
  EXPECT_DOUBLE_EQ(ideal_r_comm({4, 4}), 0);
  EXPECT_DOUBLE_EQ(ideal_r_comm({8, 4}), 0);
}

TEST(Diagnosis, RowsOfTheTable) {
  EXPECT_EQ(diagnose(1, 0, 0), Diagnosis::overlapped);
  EXPECT_EQ(diagnose(1, 1, 1), Diagnosis::no_progress);
  EXPECT_EQ(diagnose(1.02, 0.95, 0.93), Diagnosis::no_progress);  // the network itself does the first step
  EXPECT_EQ(diagnose(1.5, 0, 0.5), Diagnosis::computation_slowed);
  EXPECT_EQ(diagnose(2.2, 0.05, 1.25), Diagnosis::computation_slowed);
  EXPECT_EQ(diagnose(1.6, 1.4, 2), Diagnosis::contention);
  EXPECT_EQ(diagnose(1, 0.9, 0.6), Diagnosis::communication_slowed);
  EXPECT_EQ(diagnose(1, 0.75, 0.02), Diagnosis::overlapped);  // C < M: what outlasts is no loss
}

TEST(Diagnosis, EveryOneHasAName) {
  for (const Diagnosis one : {Diagnosis::overlapped, Diagnosis::no_progress, Diagnosis::computation_slowed,
                              Diagnosis::contention, Diagnosis::communication_slowed}) {
    EXPECT_STRNE(name_of(one), "");
  }
}

constexpr double printed = 0.005;  // two digits

TEST(Omb, PrintedPercentages) {
  EXPECT_NEAR(omb_overlap(665.10, 424.78, 412.18), 41.70, printed);     // Ibcast, Open MPI
  EXPECT_NEAR(omb_overlap(1226.44, 706.79, 681.85), 23.79, printed);    // Ireduce, Open MPI
  EXPECT_NEAR(omb_overlap(2098.49, 1888.42, 1832.79), 88.54, printed);  // Ialltoall, MPICH's progress thread
  EXPECT_NEAR(omb_overlap(851.56, 663.64, 643.58), 70.80, printed);     // Ireduce, the same
  EXPECT_DOUBLE_EQ(omb_overlap(3, 1, 1), 0);                            // never less
}

TEST(Omb, IsWhatIsLeftOfTheOverheadWhenTheComputationIsLonger) {
  EXPECT_NEAR(r_overhead(665.10, {424.78, 412.18}), 1 - 0.4170, 1e-3);
  EXPECT_NEAR(r_overhead(851.56, {663.64, 643.58}), 1 - 0.7080, 1e-3);
}

TEST(Imb, PrintedPercentages) {
  EXPECT_NEAR(imb_overlap(1888.82, 2052.86, 2281.20), 80.89, printed);  // Ialltoall, MPICH's progress thread
  EXPECT_NEAR(imb_overlap(790.55, 803.90, 981.55), 76.24, printed);     // Ireduce, the same
}

TEST(Cresta, DelayBenefit) {
  EXPECT_DOUBLE_EQ(delay_benefit(10, 5, 15), 0);    // the delay shows in full
  EXPECT_DOUBLE_EQ(delay_benefit(10, 5, 10), 0.5);  // it is hidden
  EXPECT_LT(delay_benefit(10, 5, 16), 0);           // it has cost more than itself
}

TEST(Cresta, OverlapAvailability) {
  EXPECT_DOUBLE_EQ(overlap_availability(10, 10, 20), 0);
  EXPECT_DOUBLE_EQ(overlap_availability(10, 10, 10), 1);
  EXPECT_LT(overlap_availability(10, 10, 25), 0);
}

}  // namespace
}  // namespace canele::perf::nbc
