// SPDX-License-Identifier: BSD-3-Clause
//
// Splits: the levels of a call's tree are the model's, on one host and on many; the split follows the observed times.
// One thread.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/collectives/split_policy.hpp"

namespace canele::comm::collectives {
namespace {

constexpr std::uint64_t length = 2'000'000;
constexpr double unit_ns = 200'000;

Call call_of(Operation operation, int size, int root = 0) {
  Call call;
  call.operation = operation;
  call.size = size;
  call.root = root;
  call.length = length;
  return call;
}

/// A message takes a unit of time, between hosts, too.
Hosts one_host(std::uint32_t cores_left) {
  Hosts hosts;
  hosts.cores_left = cores_left;
  hosts.within = hosts.between = {0, unit_ns / length};
  return hosts;
}

Hosts many_hosts(int ranks, int on_each, std::uint32_t cores_left) {
  Hosts hosts = one_host(cores_left);
  for (int rank = 0; rank < ranks; ++rank) hosts.of_position.push_back(static_cast<std::uint32_t>(rank / on_each));
  return hosts;
}

TEST(Splits, OnOneHostLevelsAreThoseOfTheModel) {
  for (std::uint32_t ranks = 2; ranks < 64; ++ranks) {
    for (const bool parts : {false, true}) {
      const Call call = call_of(parts ? Operation::scatter : Operation::bcast, static_cast<int>(ranks));
      const auto levels = levels_of(call, 2, one_host(64 - ranks));
      ASSERT_EQ(levels.size(), split_tree::height(ranks));
      const auto sizes = parts ? split_tree::Sizes::doubling : split_tree::Sizes::equal;
      const double computation = split_tree::computation({64, ranks}, sizes);
      // The highest subtree may be smaller than the model's.
      if (parts && (ranks & (ranks - 1)) != 0) continue;
      for (std::uint32_t split = 0; split <= levels.size(); ++split) {
        EXPECT_NEAR(split_tree::overlapped_time(levels, split, computation * unit_ns) / unit_ns,
                    split_tree::overlapped_time({64, ranks}, split, sizes), 1e-6);
      }
    }
  }
}

TEST(Splits, AnotherRootChangesNothingOnOneHost) {
  const auto levels = levels_of(call_of(Operation::bcast, 60), 2, one_host(4));
  const auto others = levels_of(call_of(Operation::bcast, 60, 17), 2, one_host(4));
  ASSERT_EQ(levels.size(), others.size());
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(levels[i].hidden, others[i].hidden);
}

TEST(Splits, BetweenHostsTheCardsCarryAndCoresDoNot) {
  // 4 hosts of 16 ranks, one core left: the lowest 4 levels are within the hosts, 8, 4, 2, 1 turns; the others between.
  const auto levels = levels_of(call_of(Operation::bcast, 64), 2, many_hosts(64, 16, 1));
  const double hidden[] = {8, 4, 2, 1, 1, 1};
  ASSERT_EQ(levels.size(), std::size(hidden));
  for (std::size_t i = 0; i < levels.size(); ++i) {
    EXPECT_DOUBLE_EQ(levels[i].hidden, hidden[i] * unit_ns) << i + 1;
    EXPECT_DOUBLE_EQ(levels[i].visible, unit_ns);
  }
  EXPECT_EQ(split_tree::best_split(levels, 20 * unit_ns), 0U) << "all is hidden";
  EXPECT_EQ(split_tree::best_split(levels, 9 * unit_ns), 1U) << "1 + max(9, 9)";
  EXPECT_EQ(split_tree::best_split(levels, unit_ns), 3U) << "3 + max(1, 3)";
}

TEST(Splits, OfWiderTreesALevelTakesItsParentsAllMessages) {
  const auto levels = levels_of(call_of(Operation::bcast, 64), 4, one_host(8));
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_DOUBLE_EQ(levels[0].visible, 3 * unit_ns);
  EXPECT_DOUBLE_EQ(levels[0].hidden, 6 * unit_ns) << "48 messages on 8 cores";
  EXPECT_DOUBLE_EQ(levels[2].hidden, unit_ns) << "3 messages on 8 cores";
}

TEST(Splits, FollowWhatWasSeenBetweenCallAndWait) {
  Splits splits;
  splits.place(one_host(2));
  Course* const course = splits.find(call_of(Operation::bcast, 62), 2);
  ASSERT_NE(course, nullptr);
  EXPECT_FALSE(course->to_root());
  EXPECT_EQ(course->split(), 0U) << "nothing is known yet";
  const auto seen = [&](double units) {
    for (int i = 0; i < 40; ++i) course->seen(static_cast<std::uint64_t>(units * unit_ns), false);
    return course->split();
  };
  EXPECT_EQ(seen(64.0 / 62 * 6), 3U) << "as published";
  EXPECT_EQ(seen(100), 0U) << "hidden altogether";
  EXPECT_EQ(seen(17), 1U);
  EXPECT_EQ(seen(0.1), 4U) << "4 + 2, as 5 + 1";
  EXPECT_EQ(splits.find(call_of(Operation::bcast, 62), 2), course) << "the same call is remembered";
  EXPECT_NE(splits.find(call_of(Operation::reduce, 62), 2), course);
  EXPECT_TRUE(splits.find(call_of(Operation::reduce, 62), 2)->to_root());
}

/// Acts as a group: it lists what was put off.
struct Listening {
  PutOffs list;
  std::shared_ptr<int> group = std::make_shared<int>();
  Splits splits;
  Course* course;
  explicit Listening(std::uint64_t called_ns) {
    splits.place(one_host(2));
    splits.listen(list, group);
    course = splits.find(call_of(Operation::bcast, 62), 2);
    call(called_ns);
  }
  void call(std::uint64_t now_ns) {
    course->begins(now_ns);
    course->computes(now_ns);
  }
};

TEST(Splits, AnyThreadThatWaitsTellsHowLongTheProgramComputed) {
  Listening one(5'000);
  EXPECT_TRUE(one.list.any());
  one.course->ends();  // whether it has ended or not
  EXPECT_FALSE(one.list.resume(PutOff::Because::thread_waits, 1'005'000)) << "nothing was put off";
  EXPECT_EQ(one.course->computation_ns(), 1'000'000U);
  EXPECT_FALSE(one.list.any()) << "once";
  one.call(9'000'000);
  EXPECT_EQ(one.course->computation_ns(), 1'000'000U);
}

TEST(Splits, WhatHasEndedUnseenIsSeenByTheNextCall) {
  Listening one(5'000);
  one.call(6'000);
  EXPECT_EQ(one.course->computation_ns(), 0U) << "several at a time tell nothing";
  one.course->ends();
  one.course->ends();
  one.call(1'006'000);
  EXPECT_EQ(one.course->computation_ns(), 1'000'000U);
}

TEST(Splits, OfAGroupThatIsGoingNothingIsHeard) {
  Listening one(5'000);
  one.group.reset();
  EXPECT_FALSE(one.list.resume(PutOff::Because::thread_waits, 1'005'000));
  EXPECT_EQ(one.course->computation_ns(), 0U);
}

TEST(Splits, WhoHasNotWaitedYetComputesAtLeastSoLong) {
  Splits splits;
  splits.place(one_host(2));
  Course& course = *splits.find(call_of(Operation::bcast, 62), 2);
  course.seen(1'000'000, true);
  course.seen(1000, true);
  EXPECT_EQ(course.computation_ns(), 1'000'000U);
  course.seen(1000, false);
  EXPECT_LT(course.computation_ns(), 1'000'000U);
}

TEST(Splits, AreForcedOrLeftAlone) {
  Splits splits;
  EXPECT_EQ(splits.find(call_of(Operation::bcast, 62), 2), nullptr) << "no core is left: nothing can be hidden";
  splits.force(2);
  EXPECT_EQ(splits.find(call_of(Operation::bcast, 62), 2)->split(), 2U);
  EXPECT_EQ(splits.find(call_of(Operation::bcast, 62), 0), nullptr) << "no tree";
  Splits of_two;
  of_two.force(2);
  EXPECT_EQ(of_two.find(call_of(Operation::bcast, 2), 2)->split(), 1U) << "there is one level";
  Splits free;
  free.place(one_host(2));
  Call little = call_of(Operation::bcast, 62);
  little.length = 1000;
  EXPECT_EQ(free.find(little, 2), nullptr) << "the copy is not what takes time";
}

TEST(Splits, ForgetTheOldestKindOfCall) {
  Splits splits;
  splits.place(one_host(2));
  splits.find(call_of(Operation::bcast, 62), 2)->seen(5'000'000, false);
  for (int root = 1; root <= 8; ++root) splits.find(call_of(Operation::bcast, 62, root), 2);
  EXPECT_EQ(splits.find(call_of(Operation::bcast, 62), 2)->computation_ns(), 0U);
}

}  // namespace
}  // namespace canele::comm::collectives
