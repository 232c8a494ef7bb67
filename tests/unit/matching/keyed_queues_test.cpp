// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher's table alone. One thread.
//
// It is filled far beyond a bucket's seven slots, so that overflow and growing are always exercised.
#include <gtest/gtest.h>

#include <vector>

#include "comm/matching/matcher.hpp"

namespace canele::comm {
namespace {

TEST(KeyedQueuesTest, GrowsAndKeepsEveryNode) {
  KeyedQueues<FiledExact> table(1);
  constexpr std::size_t count = 200'000;
  std::vector<PostedNode> nodes(count);
  for (std::size_t i = 0; i < count; ++i) {
    nodes[i].tag = i / 2;  // two per key
    table.push(nodes[i]);
  }
  EXPECT_EQ(table.keys(), count / 2);
  std::size_t seen = 0;
  table.each_while([&](MatchNode&) { return ++seen != 0; });
  EXPECT_EQ(seen, count);
  for (std::size_t i = 0; i < count; i += 2) {
    ASSERT_EQ(table.find({i / 2, 0, 0}), &nodes[i]);
    table.remove(nodes[i]);
    ASSERT_EQ(table.find({i / 2, 0, 0}), &nodes[i + 1]);
    table.remove(nodes[i + 1]);
    ASSERT_EQ(table.find({i / 2, 0, 0}), nullptr);
  }
  EXPECT_EQ(table.keys(), 0u);
}

TEST(KeyedQueuesTest, RemovesFromTheMiddleAndTheEnds) {
  KeyedQueues<FiledExact> table(1);
  PostedNode a, b, c;
  for (PostedNode* node : {&a, &b, &c}) table.push(*node);
  table.remove(b);
  EXPECT_EQ(table.find({0, 0, 0}), &a);
  table.remove(c);
  table.push(b);
  table.remove(a);
  EXPECT_EQ(table.find({0, 0, 0}), &b);
  table.remove(b);
  EXPECT_EQ(table.find({0, 0, 0}), nullptr);
}

/// Also where a bucket's slots are taken, and its heads are chained.
TEST(KeyedQueuesTest, WhatIsPushedFirstComesFirst) {
  KeyedQueues<FiledExact> table(1);
  constexpr std::size_t count = 3'000;
  std::vector<PostedNode> nodes(3 * count);
  const auto key = [&](std::size_t i) { return MatchKey(nodes[i]); };
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].tag = i % count;
  for (std::size_t i = 0; i < count; ++i) {
    i % 2 == 0 ? table.push(nodes[i]) : table.push_first(nodes[i], key(i));
    table.push_first(nodes[count + i], key(i));
    table.push(nodes[2 * count + i]);
  }
  EXPECT_EQ(table.keys(), count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t next : {count + i, i, 2 * count + i}) {
      ASSERT_EQ(table.find(key(i)), &nodes[next]) << i;
      table.remove(nodes[next]);
    }
    ASSERT_EQ(table.find(key(i)), nullptr);
  }
  EXPECT_EQ(table.keys(), 0u);
}

}  // namespace
}  // namespace canele::comm
