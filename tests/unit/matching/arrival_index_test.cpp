// SPDX-License-Identifier: BSD-3-Clause
//
// Orders of arrival against a list: which message is first, which follows which, and how much memory few messages keep.
// And the pool that they take it from.
//
// One thread. Random choices come from a seed, which is printed.
#include "comm/matching/arrival_index.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <list>
#include <random>
#include <set>
#include <vector>

namespace canele::comm {
namespace {

constexpr auto of = ArrivalOrder::Of::session;

/// Every third message has an index entry; the others hold their slot themselves.
struct Ordered {
  explicit Ordered(std::size_t count) : messages(count), entries(count) {
    for (std::size_t i = 0; i < count; i += 3) messages[i].secondary.set(&entries[i]);
  }
  void append(std::size_t i) {
    blocks.reserve(1);
    order.append(messages[i], of, blocks);
  }
  void remove(std::size_t i) { EXPECT_EQ(&ArrivalOrder::remove(messages[i], of, blocks), &order); }

  std::vector<UnexpectedNode> messages;
  std::vector<IndexEntry> entries;
  OrderBlocks blocks;
  ArrivalOrder order;
};

void expect_same(Ordered& world, const std::list<std::size_t>& model) {
  UnexpectedNode* at = world.order.first();
  for (const std::size_t i : model) {
    ASSERT_EQ(at, &world.messages[i]);
    at = ArrivalOrder::after(*at, of);
  }
  ASSERT_EQ(at, nullptr);
  ASSERT_EQ(world.order.empty(), model.empty());
}

TEST(ArrivalOrder, IsThatOfAListWhateverIsTakenOut) {
  constexpr std::size_t count = 400, operations = 40'000;
  for (const unsigned seed : {20261125u, 1u, 2u}) {
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    Ordered world(count);
    std::list<std::size_t> model;
    std::vector<std::list<std::size_t>::iterator> where(count, model.end());
    for (std::size_t step = 0; step < operations; ++step) {
      const std::size_t i = random() % count;
      const bool grows = step / 500 % 2 == 0;  // sometimes many, sometimes few
      if (where[i] == model.end() && (grows || random() % 8 == 0)) {
        world.append(i);
        where[i] = model.insert(model.end(), i);
      } else if (where[i] != model.end() && (!grows || random() % 8 == 0)) {
        world.remove(i);
        model.erase(where[i]);
        where[i] = model.end();
      }
      if (step % 16 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_same(world, model)) << "step " << step;
      }
    }
  }
}

/// A receiver that leaves one message of many must not keep a block for each.
TEST(ArrivalOrder, FewMessagesOfManyKeepFewBlocks) {
  constexpr std::size_t count = 27'000;
  Ordered world(count);
  for (std::size_t i = 0; i < count; ++i) world.append(i);
  EXPECT_EQ(world.blocks.in_use(), count / OrderBlock::slots);
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; ++i) {
    i % OrderBlock::slots == 0 ? void(++left) : world.remove(i);
  }
  EXPECT_LE(world.blocks.in_use(), left / 4);
  for (std::size_t i = 0; i < count; i += OrderBlock::slots) world.remove(i);
  EXPECT_EQ(world.blocks.in_use(), 0u);
}

TEST(ChunkPool, KeepsItsObjectsApartAndGivesABurstBack) {
  constexpr std::size_t many = 100'000;  // several huge pages
  std::vector<MatchNode> nodes(many);
  ChunkPool<IndexEntry, 64> pool;
  for (int burst = 0; burst < 2; ++burst) {
    std::set<const IndexEntry*> taken;
    std::vector<IndexEntry*> order;
    for (std::size_t i = 0; i < many; ++i) {
      pool.reserve(1 + i % 3);
      order.push_back(&pool.take());
      taken.insert(order.back());
      order.back()->any_source.next = &nodes[i];
    }
    EXPECT_EQ(taken.size(), many);
    EXPECT_GE(pool.chunks(), many * sizeof(IndexEntry) / huge_page);
    for (std::size_t i = 0; i < many; ++i) {
      ASSERT_EQ(order[i]->any_source.next, &nodes[i]);
      pool.give_back(*order[i]);
    }
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(pool.chunks(), 1u);
  }
}

TEST(ChunkPool, HasWhatWasReserved) {
  for (const std::size_t more : {1u, 63u, 64u, 65u, 4096u, 40'000u}) {
    ChunkPool<IndexEntry, 64> pool;
    pool.reserve(1);
    pool.take();
    pool.reserve(more);
    for (std::size_t i = 0; i < more; ++i) pool.take();
    EXPECT_EQ(pool.in_use(), more + 1);
  }
}

}  // namespace
}  // namespace canele::comm
