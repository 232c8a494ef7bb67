// SPDX-License-Identifier: BSD-3-Clause
//
// SplitPolicy: the levels of a call's tree are the model's, on one host and on many; the split follows the observed
// times. One thread.
#include "comm/collectives/split_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(SplitPolicy, OnOneHostLevelsAreThoseOfTheModel) {
  for (std::uint32_t ranks = 2; ranks < 64; ++ranks) {
    for (const bool blocks : {false, true}) {
      const Call call = call_of(blocks ? Operation::scatter : Operation::bcast, static_cast<int>(ranks));
      const auto levels = levels_of(call, 2, one_host(64 - ranks));
      ASSERT_EQ(levels.size(), split_tree::height(ranks));
      const auto sizes = blocks ? split_tree::Sizes::doubling : split_tree::Sizes::equal;
      const double computation = split_tree::computation({64, ranks}, sizes);
      // The highest subtree may be smaller than the model's.
      if (blocks && (ranks & (ranks - 1)) != 0) continue;
      for (std::uint32_t split = 0; split <= levels.size(); ++split) {
        EXPECT_NEAR(split_tree::overlapped_time(levels, split, computation * unit_ns) / unit_ns,
                    split_tree::overlapped_time({64, ranks}, split, sizes), 1e-6);
      }
    }
  }
}

TEST(SplitPolicy, AnotherRootChangesNothingOnOneHost) {
  const auto levels = levels_of(call_of(Operation::bcast, 60), 2, one_host(4));
  const auto others = levels_of(call_of(Operation::bcast, 60, 17), 2, one_host(4));
  ASSERT_EQ(levels.size(), others.size());
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(levels[i].hidden, others[i].hidden);
}

TEST(SplitPolicy, BetweenHostsTheCardsCarryAndCoresDoNot) {
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

TEST(SplitPolicy, OfWiderTreesALevelTakesItsParentsAllMessages) {
  const auto levels = levels_of(call_of(Operation::bcast, 64), 4, one_host(8));
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_DOUBLE_EQ(levels[0].visible, 3 * unit_ns);
  EXPECT_DOUBLE_EQ(levels[0].hidden, 6 * unit_ns) << "48 messages on 8 cores";
  EXPECT_DOUBLE_EQ(levels[2].hidden, unit_ns) << "3 messages on 8 cores";
}

TEST(SplitPolicy, FollowWhatWasSeenBetweenCallAndWait) {
  SplitPolicy policy;
  policy.place(one_host(2));
  CallProfile* const profile = policy.find(call_of(Operation::bcast, 62), 2);
  ASSERT_NE(profile, nullptr);
  EXPECT_FALSE(profile->to_root());
  EXPECT_EQ(profile->split(), 0U) << "nothing is known yet";
  const auto seen = [&](double units) {
    for (int i = 0; i < 40; ++i) profile->seen(static_cast<std::uint64_t>(units * unit_ns), false);
    return profile->split();
  };
  EXPECT_EQ(seen(64.0 / 62 * 6), 3U) << "as published";
  EXPECT_EQ(seen(100), 0U) << "hidden altogether";
  EXPECT_EQ(seen(17), 1U);
  EXPECT_EQ(seen(0.1), 4U) << "4 + 2, as 5 + 1";
  EXPECT_EQ(policy.find(call_of(Operation::bcast, 62), 2), profile) << "the same call is remembered";
  EXPECT_NE(policy.find(call_of(Operation::reduce, 62), 2), profile);
  EXPECT_TRUE(policy.find(call_of(Operation::reduce, 62), 2)->to_root());
}

/// Acts as a group: it lists what was deferred.
struct Listening {
  DeferredWorkList list;
  std::shared_ptr<int> group = std::make_shared<int>();
  SplitPolicy policy;
  CallProfile* profile;
  explicit Listening(std::uint64_t called_ns) {
    policy.place(one_host(2));
    policy.listen(list, group);
    profile = policy.find(call_of(Operation::bcast, 62), 2);
    call(called_ns);
  }
  void call(std::uint64_t now_ns) {
    profile->begins(now_ns);
    profile->computes(now_ns);
  }
};

TEST(SplitPolicy, AnyThreadThatWaitsTellsHowLongTheProgramComputed) {
  Listening one(5'000);
  EXPECT_TRUE(one.list.any());
  one.profile->ends();  // whether it has ended or not
  EXPECT_FALSE(one.list.resume(DeferredWork::Because::thread_waits, 1'005'000)) << "nothing was deferred";
  EXPECT_EQ(one.profile->computation_ns(), 1'000'000U);
  EXPECT_FALSE(one.list.any()) << "once";
  one.call(9'000'000);
  EXPECT_EQ(one.profile->computation_ns(), 1'000'000U);
}

TEST(SplitPolicy, WhatHasEndedUnseenIsSeenByTheNextCall) {
  Listening one(5'000);
  one.call(6'000);
  EXPECT_EQ(one.profile->computation_ns(), 0U) << "several at a time tell nothing";
  one.profile->ends();
  one.profile->ends();
  one.call(1'006'000);
  EXPECT_EQ(one.profile->computation_ns(), 1'000'000U);
}

TEST(SplitPolicy, OfAGroupThatIsGoingNothingIsHeard) {
  Listening one(5'000);
  one.group.reset();
  EXPECT_FALSE(one.list.resume(DeferredWork::Because::thread_waits, 1'005'000));
  EXPECT_EQ(one.profile->computation_ns(), 0U);
}

TEST(SplitPolicy, WhoHasNotWaitedYetComputesAtLeastSoLong) {
  SplitPolicy policy;
  policy.place(one_host(2));
  CallProfile& profile = *policy.find(call_of(Operation::bcast, 62), 2);
  profile.seen(1'000'000, true);
  profile.seen(1000, true);
  EXPECT_EQ(profile.computation_ns(), 1'000'000U);
  profile.seen(1000, false);
  EXPECT_LT(profile.computation_ns(), 1'000'000U);
}

TEST(SplitPolicy, AreOverriddenOrLeftAlone) {
  SplitPolicy policy;
  EXPECT_EQ(policy.find(call_of(Operation::bcast, 62), 2), nullptr) << "no core is left: nothing can be hidden";
  policy.set_override(2);
  EXPECT_EQ(policy.find(call_of(Operation::bcast, 62), 2)->split(), 2U);
  EXPECT_EQ(policy.find(call_of(Operation::bcast, 62), 0), nullptr) << "no tree";
  SplitPolicy of_two;
  of_two.set_override(2);
  EXPECT_EQ(of_two.find(call_of(Operation::bcast, 2), 2)->split(), 1U) << "there is one level";
  SplitPolicy free;
  free.place(one_host(2));
  Call little = call_of(Operation::bcast, 62);
  little.length = 1000;
  EXPECT_EQ(free.find(little, 2), nullptr) << "the copy is not what takes time";
}

TEST(SplitPolicy, ForgetTheOldestKindOfCall) {
  SplitPolicy policy;
  policy.place(one_host(2));
  policy.find(call_of(Operation::bcast, 62), 2)->seen(5'000'000, false);
  for (int root = 1; root <= 8; ++root) policy.find(call_of(Operation::bcast, 62, root), 2);
  EXPECT_EQ(policy.find(call_of(Operation::bcast, 62), 2)->computation_ns(), 0U);
}

}  // namespace
}  // namespace canele::comm::collectives
