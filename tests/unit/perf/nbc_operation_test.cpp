// SPDX-License-Identifier: BSD-3-Clause
//
// The check of results of canele-perf nbc: right ones pass, one wrong element does not; and where ranks compute.
//
// One thread. The collectives are played here by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "apps/perf/nbc/layout.hpp"
#include "apps/perf/nbc/operation.hpp"

namespace canele::perf::nbc {
namespace {

constexpr std::uint64_t size = 40 * sizeof(double);

TEST(Buffers, AllreduceIsTheSumOfAllInputs) {
  std::vector<double> sum(40);
  for (int rank = 0; rank < 3; ++rank) {
    Buffers one(rank, 3);
    const Call call = one.prepare(Operation::allreduce, size, true);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += call.input[i];
  }
  Buffers one(2, 3);
  const Call call = one.prepare(Operation::allreduce, size, true);
  EXPECT_NE(one.check(call), "") << "nothing has been received yet";
  std::copy(sum.begin(), sum.end(), call.output);
  EXPECT_EQ(one.check(call), "");
  call.output[17] += 1;
  EXPECT_NE(one.check(call).find("element 17"), std::string::npos) << one.check(call);
}

TEST(Buffers, AlltoallTellsBlocksApart) {
  Buffers first(0, 2), second(1, 2);
  const Call a = first.prepare(Operation::alltoall, size, true), b = second.prepare(Operation::alltoall, size, true);
  std::copy_n(a.input, 40, a.output);
  std::copy_n(b.input, 40, a.output + 40);
  EXPECT_EQ(first.check(a), "");
  std::copy_n(b.input + 40, 40, a.output + 40);  // the block for the other rank
  EXPECT_NE(first.check(a), "");
}

TEST(Buffers, AllgatherAndBcast) {
  Buffers first(0, 2), second(1, 2);
  const Call a = first.prepare(Operation::allgather, size, true), b = second.prepare(Operation::allgather, size, true);
  std::copy_n(a.input, 40, b.output);
  std::copy_n(b.input, 40, b.output + 40);
  EXPECT_EQ(second.check(b), "");
  const Call root = first.prepare(Operation::bcast, size, true), other = second.prepare(Operation::bcast, size, true);
  EXPECT_NE(second.check(other), "");
  std::copy_n(root.output, 40, other.output);
  EXPECT_EQ(second.check(other), "");
}

TEST(Buffers, AreKeptForTheSameCollective) {
  Buffers one(1, 2);
  const Call call = one.prepare(Operation::bcast, size, true);
  call.output[0] = 77;
  EXPECT_EQ(one.prepare(Operation::bcast, size, false).output[0], 77);
  EXPECT_EQ(one.prepare(Operation::bcast, size, true).output[0], -1);
}

TEST(Buffers, NeededMemory) {
  EXPECT_EQ(Buffers::needed(Operation::barrier, 8, 4), 0u);
  EXPECT_EQ(Buffers::needed(Operation::bcast, 8, 4), 8u);
  EXPECT_EQ(Buffers::needed(Operation::allgather, 8, 4), 40u);
  EXPECT_EQ(Buffers::needed(Operation::alltoall, 8, 4), 64u);
}

TEST(Operations, NamesGoBothWays) {
  for (const Operation one : all_operations) EXPECT_EQ(operation_of(name_of(one)), one);
}

Options configured(const char* configuration) {
  Options options;
  options.configurations = {configuration};
  return options;
}

TEST(Layout, DedicatedLeavesTheLastCoreToTheWorker) {
  const std::vector<int> allowed = {0, 1, 2, 3, 4};
  const Options dedicated = configured("dedicated"), none = configured("none");
  EXPECT_EQ(worker_core_of(dedicated, allowed), 4);
  EXPECT_EQ(cores_of(dedicated, allowed, 0), (std::vector<int>{0, 1}));
  EXPECT_EQ(cores_of(dedicated, allowed, 1), (std::vector<int>{2, 3}));
  EXPECT_FALSE(oversubscribed(dedicated, allowed, 2));
  EXPECT_EQ(worker_core_of(none, allowed), -1);
  EXPECT_EQ(cores_of(none, {0, 1}, 1), (std::vector<int>{1}));
}

TEST(Layout, RanksMayShareOneCore) {
  const Options dedicated = configured("dedicated");
  EXPECT_EQ(cores_of(dedicated, {0, 1}, 0), (std::vector<int>{0}));
  EXPECT_EQ(cores_of(dedicated, {0, 1}, 1), (std::vector<int>{0}));
  EXPECT_TRUE(oversubscribed(dedicated, {0, 1}, 2));
  EXPECT_FALSE(oversubscribed(configured("none"), {0, 1}, 2));
}

TEST(Layout, CoresThatCannotBeHadAreNamed) {
  Options options = configured("none");
  options.cores = {0, 7};
  try {
    cores_of(options, {0, 1}, 0);
    FAIL() << "core 7 is not there";
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("core 7"), std::string::npos) << problem.what();
  }
  EXPECT_THROW(cores_of(configured("dedicated"), {0}, 0), std::runtime_error) << "none is left";
}

}  // namespace
}  // namespace canele::perf::nbc
