// SPDX-License-Identifier: BSD-3-Clause
//
// What matching costs, counted and not timed: steps of one operation while a table grows to a million entries, memory
// per entry, and that the statistics count what they say.
//
// One thread. A step is a bucket checked, an entry compared, or an entry moved; the table counts them only as
// CountingMatcher.
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "matchers.hpp"
#include "tests/slowness.hpp"

namespace canele::comm {
namespace {

constexpr std::size_t million = 1'048'576 / (test::slowness * test::slowness);  ///< a sanitizer finds nothing new there
constexpr std::uint64_t most_steps = 64, most_bytes = 64;

std::vector<std::uint32_t> shuffled(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  return order;
}

/// Checks that the matcher's memory stays below so many bytes an entry, beyond that of an empty one.
void expect_small(const CountingMatcher& matcher, std::size_t empty, std::size_t entries, std::uint64_t limit) {
  ASSERT_LE(matcher.bytes() - empty, limit * entries) << entries << " entries";
}

TEST(Growth, NoPostAndNoMatchIsSlowWhileReceivesGrowToAMillion) {
  CountingMatcher matcher(1);
  MatchSession session;
  const std::size_t empty = matcher.bytes();
  std::vector<PostedNode> receives(million);
  for (std::size_t i = 0; i < million; ++i) {
    receives[i].tag = i << 20;
    receives[i].source = static_cast<std::int32_t>(i % 7);
    ASSERT_EQ(matcher.post(session, receives[i]), nullptr);
    if (i % 64 == 0) expect_small(matcher, empty, i + 1, most_bytes);
  }
  const std::size_t full = matcher.bytes();
  for (const std::uint32_t i : shuffled(million)) {
    ASSERT_EQ(matcher.arrive(session, receives[i].tag, receives[i].source), &receives[i]);
  }
  std::printf("slowest operation: %llu steps; %.1f bytes a receive\n",
              static_cast<unsigned long long>(matcher.statistics().most_steps),
              static_cast<double>(full) / static_cast<double>(million));
  EXPECT_LE(matcher.statistics().most_steps, most_steps);
}

/// Messages in a session without wildcards, and in one that has had one of each, so that three tables grow at once.
void grow_unexpected(bool indexed, std::uint64_t limit) {
  CountingMatcher matcher(1);
  MatchSession session;
  const std::size_t empty = matcher.bytes();
  if (indexed) {
    EXPECT_EQ(matcher.find(session, rank_any, 0, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(matcher.find(session, 0, 0, 0), nullptr);
  }
  std::vector<UnexpectedNode> messages(million);
  for (std::size_t i = 0; i < million; ++i) {
    messages[i].tag = i << 20;
    messages[i].source = static_cast<std::int32_t>(i);
    ASSERT_EQ(matcher.arrive(session, messages[i].tag, messages[i].source), nullptr);
    matcher.store(session, messages[i]);
    if (i % 64 == 0) expect_small(matcher, empty, i + 1, limit);
  }
  const std::size_t full = matcher.bytes();
  PostedNode receive;
  for (const std::uint32_t i : shuffled(million)) {
    receive.tag = messages[i].tag;
    receive.source = messages[i].source;
    if (indexed && i % 3 == 1) receive.source = rank_any;
    receive.mask = indexed && i % 3 == 2 ? 0 : ~std::uint64_t{0};
    ASSERT_EQ(matcher.post(session, receive), &messages[i]);
  }
  std::printf("slowest operation: %llu steps; %.1f bytes a message\n",
              static_cast<unsigned long long>(matcher.statistics().most_steps),
              static_cast<double>(full) / static_cast<double>(million));
  EXPECT_LE(matcher.statistics().most_steps, most_steps);
}

TEST(Growth, NoPostAndNoMatchIsSlowWhileMessagesGrowToAMillion) { grow_unexpected(false, most_bytes); }

TEST(Growth, NorWhereMessagesAreIndexedForWildcardsToo) { grow_unexpected(true, 3 * most_bytes); }

class Costs : public testing::TestWithParam<MatcherKind> {
 protected:
  void SetUp() override {
    if (!GetParam().available()) GTEST_SKIP() << "this processor has no such instructions";
  }
};

/// A thousand receives, and the message for the last one: a search, as this structure counts it.
TEST_P(Costs, StatisticsCountWhatASearchLooksAt) {
  constexpr std::uint64_t count = 1'000;
  CountingMatcher matcher(1, GetParam().make(1));
  MatchSession session;
  std::vector<PostedNode> receives(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    receives[i].tag = i;
    ASSERT_EQ(matcher.post(session, receives[i]), nullptr);
  }
  ASSERT_EQ(matcher.statistics().searches, 0u);
  ASSERT_EQ(matcher.arrive(session, count - 1, 0), &receives.back());
  const matching::Statistics& statistics = matcher.statistics();
  const std::string name = GetParam().name;
  const bool whole_list = name == "list" || name == "peers" || name == "arrays" || name == "vector" || name == "fuzzy";
  EXPECT_EQ(statistics.searches, 1u);
  if (whole_list) {
    EXPECT_EQ(statistics.total.attempts, count);
    EXPECT_EQ(statistics.search_length[10], 1u);  // 512 to 1,023
  } else {
    EXPECT_LE(statistics.total.attempts, 10u);
  }
  EXPECT_EQ(statistics.posted[10], count - 512 + 1 + 1);  // 512 to 1,000 on the way up, and 999 after the match
}

INSTANTIATE_TEST_SUITE_P(Matchers, Costs, testing::ValuesIn(all_matchers), name_of);

TEST(MatcherMemory, IsWhatTheDocumentationSays) {
  struct Expected {
    const char* name;
    double posted, unexpected;  // bytes an entry, at most
  };
  for (const Expected expected :
       {Expected{"table", 48, 48}, Expected{"list", 0.1, 0.1}, Expected{"bins", 1, 1}, Expected{"peers", 0.1, 0.1},
        Expected{"arrays", 32.1, 32.1}, Expected{"vector", 48.1, 32.1}, Expected{"fuzzy", 14.1, 12.1}}) {
    constexpr std::size_t count = 65'536;
    CountingMatcher posted(1, matching::make_alternative(expected.name, 1)),
        unexpected(1, matching::make_alternative(expected.name, 1));
    const std::size_t empty = posted.bytes();
    MatchSession a, b;
    std::vector<PostedNode> receives(count);
    std::vector<UnexpectedNode> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      receives[i].tag = messages[i].tag = i;
      ASSERT_EQ(posted.post(a, receives[i]), nullptr);
      unexpected.store(b, messages[i]);
    }
    const auto each = [&](const CountingMatcher& matcher) {
      return static_cast<double>(matcher.bytes() - empty) / static_cast<double>(count);
    };
    std::printf("%-8s %6.1f bytes a receive, %6.1f a message, %zu empty\n", expected.name, each(posted),
                each(unexpected), empty);
    EXPECT_LE(each(posted), expected.posted) << expected.name;
    EXPECT_LE(each(unexpected), expected.unexpected) << expected.name;
  }
}

}  // namespace
}  // namespace canele::comm
