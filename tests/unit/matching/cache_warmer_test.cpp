// SPDX-License-Identifier: BSD-3-Clause
//
// The cache warmer: what it walks over, how much at a time, when; and that matching continues beside it.
//
// One thread; the last test two. Its effect on the caches is not measured here, but by `match_campaign warming`.
#include "comm/matching/alternatives/cache_warmer.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "tests/slowness.hpp"
#include "tests/unit/matching/matchers.hpp"

namespace canele::comm::matching {
namespace {

/// Runs until a pass has ended. Returns the number of runs.
int run_pass(CacheWarmer& cache_warmer, std::uint64_t now_ns) {
  int runs = 0;
  for (const std::uint64_t passes = cache_warmer.passes(); cache_warmer.passes() == passes; ++runs) {
    if (!cache_warmer.due(now_ns)) return -1;
    CacheWarmer::run(cache_warmer);
  }
  return runs;
}

TEST(CacheWarmer, APassIsEveryLineOnceInSlices) {
  CacheWarmer cache_warmer(1000);
  std::vector<std::byte> memory(CacheWarmer::lines_per_run * 64 * 3);
  Region regions[] = {{memory.data(), memory.size(), nullptr}, {memory.data(), 64 * 10, nullptr}, {memory.data(), 1}};
  for (Region& region : regions) cache_warmer.regions.add(region);
  EXPECT_EQ(run_pass(cache_warmer, 1), 4);
  EXPECT_EQ(cache_warmer.lines(), CacheWarmer::lines_per_run * 3 + 10 + 1);
  EXPECT_EQ(run_pass(cache_warmer, 1001), 4);
  EXPECT_EQ(cache_warmer.lines(), 2 * (CacheWarmer::lines_per_run * 3 + 10 + 1));
}

TEST(CacheWarmer, APassBeginsWhenThePeriodIsOver) {
  CacheWarmer cache_warmer(1000);
  EXPECT_EQ(run_pass(cache_warmer, 5000), 1);
  EXPECT_FALSE(cache_warmer.due(5999));
  EXPECT_EQ(run_pass(cache_warmer, 6000), 1);
  EXPECT_EQ(cache_warmer.lines(), 0u) << "there is nothing to warm";
}

TEST(CacheWarmer, OneCallerIsTold) {
  CacheWarmer cache_warmer(1000);
  ASSERT_TRUE(cache_warmer.due(1));
  EXPECT_FALSE(cache_warmer.due(2)) << "the first has not run it yet";
  CacheWarmer::run(cache_warmer);
  EXPECT_FALSE(cache_warmer.due(3));
  EXPECT_TRUE(cache_warmer.due(1001));
}

TEST(CacheWarmer, IsNotDueWhenOffOrPaused) {
  CacheWarmer off(0), cache_warmer(1000);
  EXPECT_FALSE(off.on());
  EXPECT_FALSE(off.due(1'000'000'000));
  cache_warmer.pause();
  EXPECT_FALSE(cache_warmer.due(1'000'000'000));
  cache_warmer.resume();
  EXPECT_TRUE(cache_warmer.due(1'000'000'000));
}

class CacheWarming : public testing::TestWithParam<MatcherKind> {
 protected:
  CacheWarming() {
    if (!GetParam().available()) return;
    matcher.emplace(1, make_alternative(GetParam().name, 1, GetParam().isa, &cache_warmer.regions));
  }
  void SetUp() override {
    if (!matcher) GTEST_SKIP() << "this processor cannot";
  }
  CacheWarmer cache_warmer{1};
  std::optional<CountingMatcher> matcher;
  MatchSession session;
};

TEST_P(CacheWarming, AllEntriesLieInItsRegions) {
  constexpr std::size_t count = 5000;
  std::vector<PostedNode> receives(count);
  for (std::size_t i = 0; i < count; ++i) {
    receives[i].tag = i;
    ASSERT_EQ(matcher->post(session, receives[i]), nullptr);
  }
  std::set<std::pair<const std::byte*, const std::byte*>> regions;
  std::size_t bytes = 0;
  for (const Region* region = cache_warmer.regions.newest(); region != nullptr; region = region->next) {
    regions.emplace(region->begin + region->bytes, region->begin);
    bytes += region->bytes;
  }
  for (const PostedNode& receive : receives) {
    const auto* block = static_cast<const std::byte*>(receive.position.block);
    const auto region = regions.upper_bound({block, nullptr});
    ASSERT_TRUE(region != regions.end() && region->second <= block);
  }
  ASSERT_GT(run_pass(cache_warmer, 1), 0);
  EXPECT_EQ(cache_warmer.lines(), bytes / 64);
  for (PostedNode& receive : receives) matcher->cancel(session, receive);
}

TEST_P(CacheWarming, MatchingGoesOnBesideIt) {
  std::atomic<bool> stop{false};
  std::thread warming([&] {
    for (std::uint64_t now = 1; !stop.load(std::memory_order_relaxed); ++now) {
      if (cache_warmer.due(now)) CacheWarmer::run(cache_warmer);
    }
  });
  std::vector<PostedNode> receives(300);
  for (int round = 0; round < 100 / test::slowness || cache_warmer.passes() == 0; ++round) {
    for (std::size_t i = 0; i < receives.size(); ++i) {
      receives[i] = PostedNode();
      receives[i].tag = i;
      EXPECT_EQ(matcher->post(session, receives[i]), nullptr);
    }
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const std::size_t k = i * 7 % receives.size();
      EXPECT_EQ(matcher->arrive(session, k, 0), &receives[k]);
    }
  }
  stop = true;
  warming.join();
}

INSTANTIATE_TEST_SUITE_P(Lists, CacheWarming,
                         testing::Values(MatcherKind{"arrays"}, MatcherKind{"vector", Isa::scalar, "_scalar"},
                                         MatcherKind{"vector", Isa::avx2, "_avx2"},
                                         MatcherKind{"fuzzy", Isa::scalar, "_scalar"},
                                         MatcherKind{"fuzzy", Isa::avx2, "_avx2"}),
                         name_of);

}  // namespace
}  // namespace canele::comm::matching
