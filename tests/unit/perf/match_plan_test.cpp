// SPDX-License-Identifier: BSD-3-Clause
//
// The plans of canele-perf match: every receive gets a message, with every matcher; and the counts. One thread.
//
// count_matches() is the oracle, too: it plays the plan on a real matcher and throws if anything is left over.
#include "apps/perf/match_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "apps/perf/flood.hpp"
#include "apps/perf/matcher_counts.hpp"

namespace canele::perf {
namespace {

constexpr Direction directions[] = {Direction::posted, Direction::unexpected};
constexpr Order orders[] = {Order::in_order, Order::reverse, Order::shuffled, Order::deep};

MatchOptions shares(double any_source, double any_tag) {
  MatchOptions options;
  options.any_source = any_source;
  options.any_tag = any_tag;
  return options;
}

std::vector<std::uint64_t> entries_of(const Plan& plan) {
  std::vector<std::uint64_t> entries;
  for (const PlannedReceive& receive : plan.receives) entries.push_back(receive.entry);
  return entries;
}

TEST(MatchPlan, LeavesNothingOverWhateverTheShares) {
  for (const std::string& matcher : matchers()) {
    for (const auto& options :
         {shares(0, 0), shares(1, 0), shares(0, 1), shares(30, 30), shares(100, 0), shares(0, 100), shares(100, 100)}) {
      for (const Direction direction : directions) {
        for (const Order order : orders) {
          for (const std::size_t entries : {1, 16, 257}) {
            const Plan plan = make_plan(options, direction, order, entries);
            EXPECT_NO_THROW(count_matches(plan, direction, matcher))
                << matcher << " " << name_of(direction) << " " << name_of(order) << " " << entries << " any source "
                << options.any_source << " any tag " << options.any_tag;
          }
        }
      }
    }
  }
}

TEST(MatchPlan, HasDistinctTagsUpToTwoMillion) {
  std::vector<bool> used(1 << 21, false);
  for (std::uint64_t entry = 0; entry < used.size(); ++entry) {
    const std::uint64_t tag = tag_of(entry);
    ASSERT_LT(tag, used.size());
    ASSERT_FALSE(used[tag]) << entry;
    used[tag] = true;
  }
}

TEST(MatchPlan, HasTheSharesThatWereAskedFor) {
  const Plan plan = make_plan(shares(25, 1), Direction::posted, Order::shuffled, 400);
  EXPECT_EQ(std::count_if(plan.receives.begin(), plan.receives.end(), [](const auto& r) { return r.any_source; }), 100);
  EXPECT_EQ(std::count_if(plan.receives.begin(), plan.receives.end(), [](const auto& r) { return r.any_tag; }), 4);
  for (std::size_t i = 0; i < 400; ++i) EXPECT_EQ(plan.receives[i].any_tag, i >= 396);  // posted last
  const Plan small = make_plan(shares(1, 0), Direction::posted, Order::in_order, 16);
  EXPECT_EQ(std::count_if(small.receives.begin(), small.receives.end(), [](const auto& r) { return r.any_source; }), 1);
}

TEST(MatchPlan, OrdersWhatMatches) {
  const auto tags = [](Direction direction, Order order) {
    const Plan plan = make_plan({}, direction, order, 1000);
    std::vector<std::uint64_t> receives, messages;
    for (const auto& one : plan.receives) receives.push_back(one.entry);
    for (const auto& one : plan.messages) messages.push_back(one.entry);
    const std::vector<std::uint64_t>& first = direction == Direction::posted ? receives : messages;
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    return direction == Direction::posted ? messages : receives;
  };
  for (const Direction direction : directions) {
    auto in_order = tags(direction, Order::in_order), reverse = tags(direction, Order::reverse);
    auto shuffled = tags(direction, Order::shuffled);
    EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
    std::reverse(reverse.begin(), reverse.end());
    EXPECT_EQ(reverse, in_order);
    EXPECT_NE(shuffled, in_order);
    EXPECT_EQ(std::set(shuffled.begin(), shuffled.end()).size(), 1000u);
  }
}

/// Returns the place in the list at which each match finds its partner; 0 is the head.
std::vector<std::size_t> places_of_matches(const Plan& plan, Direction direction) {
  std::vector<std::uint32_t> list, partners;
  for (const auto& one : plan.receives) (direction == Direction::posted ? list : partners).push_back(one.entry);
  for (const auto& one : plan.messages) (direction == Direction::posted ? partners : list).push_back(one.entry);
  std::vector<std::size_t> places;
  for (const std::uint32_t partner : partners) {
    const auto found = std::find(list.begin(), list.end(), partner);
    places.push_back(static_cast<std::size_t>(found - list.begin()));
    list.erase(found);
  }
  return places;
}

TEST(MatchPlan, OfFdsMatchesAtAnyPlaceButTheHead) {
  for (const Direction direction : directions) {
    for (const std::uint64_t entries : lengths_of(Load::fds)) {
      std::vector<std::size_t> places = places_of_matches(make_plan({}, direction, Order::deep, entries), direction);
      ASSERT_EQ(places.size(), entries);
      EXPECT_EQ(places.back(), 0u);  // one is left
      places.pop_back();
      EXPECT_GT(*std::min_element(places.begin(), places.end()), 0u);
      const double sum = std::accumulate(places.begin(), places.end(), 0.0);
      // The list shrinks from N to 1, and a match is at its middle on average.
      EXPECT_NEAR(sum / static_cast<double>(entries) / static_cast<double>(entries), 0.25, 0.05) << entries;
    }
  }
}

TEST(MatchPlan, OfFdsHasTheLengthsOfTheDissertation) {
  const std::vector<std::uint64_t> lengths = lengths_of(Load::fds);
  EXPECT_EQ(lengths.front(), 128u);
  EXPECT_EQ(lengths.back(), 8192u);
  for (std::size_t i = 1; i < lengths.size(); ++i) EXPECT_EQ(lengths[i], 2 * lengths[i - 1]);
  EXPECT_TRUE(lengths_of(Load::none).empty());
}

TEST(MatchPlan, DeepOfOneEntryIsThatEntry) {
  const Plan plan = make_plan({}, Direction::posted, Order::deep, 1);
  EXPECT_EQ(entries_of(plan), std::vector<std::uint64_t>{0});
}

TEST(MatcherCounts, OfFdsGrowOnAListAndNotOnTheTable) {
  const auto attempts = [](const char* matcher, std::size_t entries) {
    return count_matches(make_plan({}, Direction::posted, Order::deep, entries), Direction::posted, matcher).attempts;
  };
  EXPECT_GT(attempts("list", 1024), 4 * attempts("list", 128));
  EXPECT_NEAR(attempts("table", 1024), attempts("table", 256), 0.01);
}

TEST(MatchPlan, TellsAWrongMatch) {
  const Plan plan = make_plan(shares(0, 10), Direction::posted, Order::shuffled, 20);
  const std::vector<std::uint64_t> right = entries_of(plan);
  EXPECT_NO_THROW(check_plan(plan, right));
  auto swapped = right;
  std::swap(swapped[18], swapped[19]);  // both for any tag: they may get either
  EXPECT_NO_THROW(check_plan(plan, swapped));
  std::swap(swapped[0], swapped[1]);
  EXPECT_THROW(check_plan(plan, swapped), std::runtime_error);
  auto twice = right;
  twice[19] = twice[18];
  EXPECT_THROW(check_plan(plan, twice), std::runtime_error);
  auto stolen = right;
  stolen[19] = stolen[0];
  EXPECT_THROW(check_plan(plan, stolen), std::runtime_error);
  auto missing = right;
  missing[3] = ~std::uint64_t{0};
  EXPECT_THROW(check_plan(plan, missing), std::runtime_error);
}

TEST(MatcherCounts, OfTheTableDoNotGrow) {
  for (const Direction direction : directions) {
    for (const std::size_t entries : {256, 4096}) {  // few receives are in no table
      const Plan plan = make_plan({}, direction, Order::shuffled, entries);
      const MatcherCounts counts = count_matches(plan, direction, "table");
      EXPECT_NEAR(counts.attempts, 1, 0.01) << entries;  // two entries of a bucket may have the same mark
      EXPECT_NEAR(counts.lines, 2, 0.01) << entries;
      EXPECT_FALSE(counts.search_length.empty());
      EXPECT_FALSE(counts.depth.empty());
    }
  }
}

TEST(MatcherCounts, OfAListAreHalfOfIt) {
  const Plan plan = make_plan({}, Direction::posted, Order::reverse, 99);
  EXPECT_DOUBLE_EQ(count_matches(plan, Direction::posted, "list").attempts, 50);
}

TEST(Flood, AllowsTheLimitAndATenth) {
  FloodOptions options;
  options.limit = 1000;
  EXPECT_EQ(allowed(options), 1100u);
  options.allow = 7;
  EXPECT_EQ(allowed(options), 7u);
}

TEST(Flood, WordsTellRankAndPlace) {
  std::set<std::uint64_t> words;
  for (int rank = 0; rank < 8; ++rank) {
    for (std::uint64_t number = 0; number < 1000; ++number) words.insert(flood_word(rank, number));
  }
  EXPECT_EQ(words.size(), 8000u);
}

}  // namespace
}  // namespace canele::perf
