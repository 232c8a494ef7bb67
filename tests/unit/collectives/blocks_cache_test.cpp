// SPDX-License-Identifier: BSD-3-Clause
//
// BlocksCache: calls with blocks of their own are found again by the numbers, wherever these stand. One thread.
#include "comm/collectives/blocks_cache.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace canele::comm::collectives {
namespace {

using Numbers = std::vector<std::size_t>;

std::shared_ptr<const Schedule> any_schedule() { return std::make_shared<const Schedule>(); }

/// An alltoall of three ranks with individual lengths.
Call call_with(const Numbers& lengths, const Numbers& offsets) {
  Call call;
  call.operation = Operation::alltoall;
  call.size = static_cast<int>(lengths.size());
  call.output.lengths = lengths.data();
  call.output.offsets = offsets.data();
  return call;
}

TEST(BlocksCache, IsForCallsThatNameMemory) {
  const Numbers three{1, 2, 3};
  EXPECT_FALSE(BlocksCache::is_for(Call{}));
  Call call;
  call.input.lengths = three.data();
  EXPECT_TRUE(BlocksCache::is_for(call));
  call.input = {};
  call.output.offsets = three.data();
  EXPECT_TRUE(BlocksCache::is_for(call));
}

TEST(BlocksCache, FindsEqualNumbersAtOtherAddresses) {
  BlocksCache cache;
  std::shared_ptr<const Schedule> schedule = any_schedule();
  {
    const Numbers lengths{8, 0, 16}, offsets{0, 8, 8};
    EXPECT_EQ(cache.find(call_with(lengths, offsets), {}), nullptr);
    EXPECT_EQ(cache.keep(call_with(lengths, offsets), {}, schedule), schedule);
  }
  const Numbers lengths{8, 0, 16}, offsets{0, 8, 8};
  const auto* const found = cache.find(call_with(lengths, offsets), {});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, schedule);
}

TEST(BlocksCache, TellsCallsApartByEachArgument) {
  BlocksCache cache;
  const Numbers lengths{8, 0, 16}, offsets{0, 8, 8}, other{8, 0, 24};
  const Call kept = call_with(lengths, offsets);
  cache.keep(kept, {}, any_schedule());
  const auto finds = [&](auto change) {
    Call call = kept;
    Choice asked;
    change(call, asked);
    return cache.find(call, asked) != nullptr;
  };
  EXPECT_TRUE(finds([](Call&, Choice&) {}));
  EXPECT_FALSE(finds([&](Call& call, Choice&) { call.output.lengths = other.data(); }));
  EXPECT_FALSE(finds([&](Call& call, Choice&) { call.output.offsets = other.data(); }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.output.offsets = nullptr; }));
  EXPECT_FALSE(finds([&](Call& call, Choice&) { call.input.lengths = lengths.data(); }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.output.length = 8; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.length = 8; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.element = 8; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.root = 1; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.in_place = true; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.irregular = true; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.commutes = false; }));
  EXPECT_FALSE(finds([](Call& call, Choice&) { call.operation = Operation::allgather; }));
  EXPECT_FALSE(finds([](Call&, Choice& asked) { asked.algorithm = Algorithm::flat; }));
  EXPECT_FALSE(finds([](Call&, Choice& asked) { asked.inflight_limit = 1; }));
}

TEST(BlocksCache, ForgetsTheOneThatWasNotUsedForLongest) {
  BlocksCache cache;
  const Numbers offsets{0, 100, 200};
  std::vector<Numbers> lengths;
  for (std::size_t i = 0; i <= BlocksCache::entries; ++i) lengths.push_back({i, i, i});
  for (std::size_t i = 0; i < BlocksCache::entries; ++i) cache.keep(call_with(lengths[i], offsets), {}, any_schedule());
  EXPECT_NE(cache.find(call_with(lengths[0], offsets), {}), nullptr);
  cache.keep(call_with(lengths.back(), offsets), {}, any_schedule());
  EXPECT_NE(cache.find(call_with(lengths[0], offsets), {}), nullptr);
  EXPECT_NE(cache.find(call_with(lengths.back(), offsets), {}), nullptr);
  EXPECT_EQ(cache.find(call_with(lengths[1], offsets), {}), nullptr);
}

TEST(BlocksCache, KeepsNoCallOfTooManyRanks) {
  BlocksCache cache;
  const Numbers many(BlocksCache::most_ranks + 1, 8);
  const std::shared_ptr<const Schedule> schedule = any_schedule();
  EXPECT_EQ(cache.keep(call_with(many, many), {}, schedule), schedule) << "valid until the next call";
  EXPECT_EQ(cache.find(call_with(many, many), {}), nullptr);
}

}  // namespace
}  // namespace canele::comm::collectives
