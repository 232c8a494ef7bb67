// SPDX-License-Identifier: BSD-3-Clause
//
// The strategies alone: no clock, no engine. Order, aggregation, priorities, ageing, removal.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "strategies/strategy.hpp"

namespace canele::strategies {
namespace {

struct Message : Item {
  int number = 0;
};

class Backlog {
 public:
  explicit Backlog(const StrategyFactory& factory) : strategy_(factory.create()) {}

  Message& add(std::uint64_t tag, std::int32_t priority = 0, std::uint32_t size = 24, Kind kind = Kind::envelope) {
    messages_.push_back(std::make_unique<Message>());
    Message& m = *messages_.back();
    m.number = static_cast<int>(messages_.size()) - 1;
    m.kind = kind;
    m.flow_tag = tag;
    m.priority = priority;
    m.size = size;
    m.age = ++age_;
    strategy_->add(m);
    return m;
  }
  std::vector<int> packet(std::size_t room = 8192) {
    Plan plan;
    strategy_->plan({room, true}, plan);
    std::vector<int> numbers;
    for (int i = 0; i < plan.count; ++i) numbers.push_back(static_cast<Message&>(*plan.items[i]).number);
    EXPECT_LE(plan.count != 0 && plan.items[0]->kind == Kind::bulk ? 0 : plan.size, room);
    return numbers;
  }
  Strategy& strategy() { return *strategy_; }

 private:
  std::vector<std::unique_ptr<Message>> messages_;
  std::unique_ptr<Strategy> strategy_;
  std::uint64_t age_ = 0;
};

using Numbers = std::vector<int>;

TEST(FifoTest, OneMessagePerPacketInOrder) {
  Backlog backlog(fifo_factory);
  for (int i = 0; i < 64; ++i) backlog.add(1);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(backlog.packet(), Numbers{i});
  EXPECT_TRUE(backlog.strategy().empty());
  EXPECT_TRUE(backlog.packet().empty());
}

TEST(AggregateTest, AsManyAsFit) {
  Backlog backlog(aggregate_factory);
  for (int i = 0; i < 64; ++i) backlog.add(static_cast<std::uint64_t>(i));
  EXPECT_EQ(backlog.packet().size(), 64u);
  for (int i = 0; i < 10; ++i) backlog.add(1, 0, 100);
  EXPECT_EQ(backlog.packet(350).size(), 3u);
  EXPECT_EQ(backlog.packet(350), (Numbers{67, 68, 69}));
}

class All : public testing::TestWithParam<const StrategyFactory*> {};

TEST_P(All, EveryItemIsListedUntilItHasLeft) {
  Backlog backlog(*GetParam());
  for (int i = 0; i < 5; ++i) backlog.add(static_cast<std::uint64_t>(i % 2), i);
  Message& bulk = backlog.add(0, 0, 1000, Kind::bulk);
  backlog.add(0, 0, 40, Kind::control);
  const auto listed = [&] {
    Numbers numbers;
    const auto note = [&](const Item& item) { numbers.push_back(static_cast<const Message&>(item).number); };
    backlog.strategy().each(note);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  Numbers left = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(listed(), left);
  for (int turn = 0; turn < 20; ++turn) {
    for (const int number : backlog.packet(64)) {
      if (number != bulk.number) std::erase(left, number);  // bulk stays until it is removed
    }
    EXPECT_EQ(listed(), left);
  }
  EXPECT_EQ(left, Numbers{bulk.number});
  backlog.strategy().remove(bulk);
  EXPECT_TRUE(listed().empty());
}

TEST_P(All, ControlLeavesFirstAndBulkTakesTurns) {
  Backlog backlog(*GetParam());
  Message& bulk = backlog.add(0, 0, 0, Kind::bulk);
  for (int i = 0; i < 4; ++i) backlog.add(1, 0, 5000);
  backlog.add(0, 0, 40, Kind::control);
  EXPECT_EQ(backlog.packet().front(), 5);
  int bulk_turns = 0, envelopes = 0;
  for (int i = 0; i < 12; ++i) {
    for (const int number : backlog.packet()) number == bulk.number ? ++bulk_turns : ++envelopes;
  }
  EXPECT_EQ(envelopes, 3);  // one left with the control chunk
  EXPECT_GE(bulk_turns, 8);
  EXPECT_FALSE(backlog.strategy().empty());
  backlog.strategy().remove(bulk);
  EXPECT_TRUE(backlog.strategy().empty());
}

TEST_P(All, NoEnvelopeOvertakesControlThatDoesNotFit) {
  Backlog backlog(*GetParam());
  for (int i = 0; i < 2; ++i) backlog.add(0, 0, 60, Kind::control);
  backlog.add(1, 0, 40);
  EXPECT_EQ(backlog.packet(100), Numbers{0});
  EXPECT_EQ(backlog.packet(100), (Numbers{1, 2}));
}

TEST_P(All, BulkHasItsTurnAfterEnvelopesThatHadTheRailAlone) {
  Backlog backlog(*GetParam());
  Message& first = backlog.add(0, 0, 0, Kind::bulk);
  EXPECT_EQ(backlog.packet(), Numbers{0});
  backlog.strategy().remove(first);
  for (int i = 0; i < 2; ++i) backlog.add(1, 0, 5000);
  EXPECT_EQ(backlog.packet(), Numbers{1});
  backlog.add(0, 0, 0, Kind::bulk);
  EXPECT_EQ(backlog.packet(), Numbers{3});
}

TEST_P(All, EveryItemLeavesOnceAndFlowsKeepTheirOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    Backlog backlog(*GetParam());
    std::map<std::uint64_t, int> last;
    std::vector<Message*> queued;
    std::size_t left = 0, added = 0, removed = 0;
    for (int turn = 0; turn < 3000; ++turn) {
      if (random() % 3 != 0 && turn < 2500) {
        queued.push_back(&backlog.add(random() % 7, static_cast<std::int32_t>(random() % 9) - 4,
                                      20 + static_cast<std::uint32_t>(random() % 500)));
        ++added;
        continue;
      }
      if (random() % 10 == 0 && !queued.empty()) {
        const std::size_t i = random() % queued.size();
        backlog.strategy().remove(*queued[i]);
        queued.erase(queued.begin() + static_cast<long>(i));
        ++removed;
        continue;
      }
      if (random() % 10 == 0 && !queued.empty()) {
        Message& m = *queued[random() % queued.size()];
        const std::int32_t before = m.priority;
        m.priority = static_cast<std::int32_t>(random() % 9);
        backlog.strategy().reprioritized(m, before);
        continue;
      }
      Plan plan;
      backlog.strategy().plan({2000, true}, plan);
      for (int i = 0; i < plan.count; ++i) {
        auto& m = static_cast<Message&>(*plan.items[i]);
        ASSERT_LT(last.contains(m.flow_tag) ? last[m.flow_tag] : -1, m.number) << "flow overtaken, seed " << seed;
        last[m.flow_tag] = m.number;
        queued.erase(std::find(queued.begin(), queued.end(), &m));
        ++left;
      }
    }
    while (!backlog.packet(2000).empty()) {
    }
    EXPECT_TRUE(backlog.strategy().empty());
    EXPECT_EQ(backlog.strategy().any(), nullptr);
    EXPECT_EQ(left + removed + queued.size(), added);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, All, testing::Values(&fifo_factory, &aggregate_factory, &priority_factory),
                         [](const auto& i) { return std::string(i.param->name); });

TEST(PriorityTest, HighestFirstLendingToPredecessors) {
  Backlog backlog(priority_factory);
  backlog.add(1, 0);  // 0
  backlog.add(2, 5);  // 1
  backlog.add(3, 1);  // 2
  backlog.add(3, 9);  // 3: lends 9 to 2
  EXPECT_EQ(backlog.packet(), (Numbers{2, 3, 1, 0}));
}

TEST(PriorityTest, RaisedWhileQueued) {
  Backlog backlog(priority_factory);
  backlog.add(1, 5);
  Message& low = backlog.add(2, 0);
  low.priority = 7;
  backlog.strategy().reprioritized(low, 0);
  EXPECT_EQ(backlog.packet(), (Numbers{1, 0}));
}

TEST(PriorityTest, TheLowestLeavesWithinEightPacketsOfBeingTheOldest) {
  Backlog backlog(priority_factory);
  backlog.add(1, -100);
  int packets = 0;
  for (bool gone = false; !gone; ++packets) {
    ASSERT_LE(packets, 8);
    backlog.add(2, 50, 1000);
    const Numbers numbers = backlog.packet(1000);  // one message per packet
    gone = std::find(numbers.begin(), numbers.end(), 0) != numbers.end();
  }
  EXPECT_LE(packets, 8);
}

}  // namespace
}  // namespace canele::strategies
