// SPDX-License-Identifier: BSD-3-Clause
//
// What canele-perf nbc copies and sums without a library: as much as the collective must, in every round.
//
// The test's thread and that of a Bare. No time is measured.
#include <gtest/gtest.h>

#include "apps/perf/nbc/bare.hpp"
#include "apps/perf/pin.hpp"

namespace canele::perf::nbc {
namespace {

constexpr std::uint64_t block_size = 800;  // bytes

TEST(BareAmount, OfAllRanksIsWhatTheOperationNeeds) {
  struct Need {
    Operation operation;
    std::uint64_t fetched, summed, own;  // in blocks, all ranks together
  };
  constexpr int ranks = 4;
  const Need needs[] = {{Operation::barrier, 0, 0, 0},    {Operation::bcast, 3, 0, 0},
                        {Operation::reduce, 3, 3, 0},     {Operation::allreduce, 6, 3, 0},
                        {Operation::allgather, 12, 0, 4}, {Operation::alltoall, 12, 0, 4}};
  for (const Need& need : needs) {
    BareAmount all{};
    for (int rank = 0; rank < ranks; ++rank) {
      const BareAmount one = bare_amount(need.operation, block_size, rank, ranks);
      EXPECT_LE(one.summed, one.fetched) << name_of(need.operation) << ", rank " << rank;
      all.fetched += one.fetched;
      all.summed += one.summed;
      all.own += one.own;
    }
    EXPECT_EQ(all.fetched, need.fetched * block_size) << name_of(need.operation);
    EXPECT_EQ(all.own, need.own * block_size) << name_of(need.operation);
    EXPECT_EQ(all.summed, need.summed * block_size) << name_of(need.operation);
  }
}

TEST(BareAmount, IsWholeDoublesAndNothingForTheRootOfABroadcast) {
  EXPECT_EQ(bare_amount(Operation::bcast, block_size, 0, 2).fetched, 0u);
  EXPECT_EQ(bare_amount(Operation::bcast, block_size, 1, 2).fetched, block_size);
  EXPECT_EQ(bare_amount(Operation::allreduce, 5 * sizeof(double), 0, 2).summed, 2 * sizeof(double));
}

TEST(Bare, BringsSumsAndCopiesOfAllPieces) {
  Bare bare(allowed_cores().front());
  constexpr std::uint64_t pieces_and_a_bit = (300 << 10) + 8;
  bare.prepare({2 * pieces_and_a_bit, pieces_and_a_bit, pieces_and_a_bit});
  for (int round = 0; round < 3; ++round) {
    bare.start();
    bare.wait();
  }
  const std::span<const double> result = bare.result();
  ASSERT_EQ(result.size(), 3 * pieces_and_a_bit / sizeof(double));
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_EQ(result[i], i < result.size() / 3 ? 3 : 1) << i;
  }
  bare.prepare({});
  bare.start();
  bare.wait();
  EXPECT_TRUE(bare.result().empty());
}

}  // namespace
}  // namespace canele::perf::nbc
