// SPDX-License-Identifier: BSD-3-Clause
//
// What a polling thread does when there is no work, on a made-up clock: spin, yield, sleep. It does not yield where
// threads that compute would keep the core.
//
// One thread. Time passes only when the clock is read, and in yields.
#include "ltask/idle.hpp"

#include "tests/unit/config/fake_platform.hpp"

namespace canele::ltask {
namespace {

using Action = Idle::Action;

class Idling : public testing::Test {
 protected:
  static constexpr std::uint64_t look = 100, short_yield = 500, turn = 4'000'000, first_belief = 20'000'000;
  Idling() { platform.a_look_takes = look; }

  /// How often it does what, from the last work to the sleep.
  struct Times {
    int spins = 0, yields = 0;
  };
  Times until_sleep() {
    Times times;
    idle.worked();
    for (Action action = idle.next(); action != Action::sleep; action = idle.next()) {
      ++(action == Action::spin ? times.spins : times.yields);
    }
    return times;
  }

  test::FakePlatform platform;
  CpuContention contention;
  Idle idle{platform, {2'000, 10'000}, contention};
};

TEST_F(Idling, SpinsThenYieldsThenSleeps) {
  platform.a_yield_takes = short_yield;
  const Times times = until_sleep();
  EXPECT_GT(times.spins, 0);
  EXPECT_GT(times.yields, 1);
  EXPECT_FALSE(contention.holds(platform.now));
}

TEST_F(Idling, YieldsOnceToWhoKeepsTheCoreAndThenSleepsAtOnce) {
  platform.a_yield_takes = turn;
  EXPECT_EQ(until_sleep().yields, 1);
  EXPECT_TRUE(contention.holds(platform.now));
  EXPECT_EQ(contention.times(), 1u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(until_sleep().yields, 0);
}

TEST_F(Idling, SeesALostTurnThoughThereIsWorkAfterIt) {
  platform.a_yield_takes = turn;
  idle.worked();
  while (idle.next() != Action::yield) continue;
  EXPECT_TRUE(contention.holds(platform.now)) << "what has come in that time keeps it from asking again";
  EXPECT_EQ(until_sleep().yields, 0);
}

TEST_F(Idling, TriesAYieldAgainMoreAndMoreSeldom) {
  platform.a_yield_takes = turn;
  EXPECT_EQ(until_sleep().yields, 1);
  platform.now += first_belief;
  EXPECT_EQ(until_sleep().yields, 1);
  platform.now += first_belief;
  EXPECT_EQ(until_sleep().yields, 0) << "what has shown again is believed for longer";
  platform.now += 2 * first_belief;
  platform.a_yield_takes = short_yield;
  EXPECT_GT(until_sleep().yields, 1) << "no thread computes any more";
}

TEST_F(Idling, YieldsForLongerWhereSleepsTurnOutShort) {
  constexpr std::uint64_t short_sleep = 100'000, long_sleep = 100'000'000;
  AdaptiveYield adaptive_yield;
  platform.a_yield_takes = short_yield;
  const auto yields = [&] {
    Idle one(platform, {0, 10'000}, contention, &adaptive_yield);
    int count = 0;
    while (one.next() == Action::yield) ++count;
    return count;
  };
  const int at_first = yields();
  adaptive_yield.slept(short_sleep);
  EXPECT_GE(yields(), 2 * at_first - 1);
  for (int i = 0; i < 100; ++i) adaptive_yield.slept(short_sleep);
  const int at_most = yields();
  EXPECT_LE(at_most, 20 * at_first) << "there is an end to it";
  for (int i = 0; i < 100; ++i) adaptive_yield.slept(long_sleep);
  EXPECT_EQ(yields(), at_first);
}

TEST_F(Idling, AsksTheClockOnceAYield) {
  platform.a_yield_takes = short_yield;
  idle.worked();
  while (idle.next() != Action::yield) continue;
  const std::uint64_t before = platform.now;
  ASSERT_EQ(idle.next(), Action::yield);
  EXPECT_EQ(platform.now - before, short_yield + look);
}

TEST_F(Idling, NeverYieldsToWhomItExpects) {
  contention.assume();
  EXPECT_TRUE(contention.holds(platform.now));
  platform.now += 1'000 * first_belief;
  const Times times = until_sleep();
  EXPECT_GT(times.spins, 0);
  EXPECT_EQ(times.yields, 0);
  EXPECT_EQ(contention.times(), 0u) << "none was seen";
}

TEST_F(Idling, DisregardsWhatItHasSeenWhereNobodyComputes) {
  platform.a_yield_takes = turn;
  contention.seen(platform.now);
  contention.disregard(true);
  EXPECT_FALSE(contention.holds(platform.now));
  EXPECT_EQ(until_sleep().yields, 1);
  EXPECT_FALSE(contention.holds(platform.now)) << "it was a worker's turn";
  EXPECT_EQ(contention.times(), 2u) << "both are counted";
  contention.disregard(false);
  until_sleep();
  EXPECT_TRUE(contention.holds(platform.now));
}

TEST_F(Idling, SleepsAtHomeWhereOthersCompute) {
  platform.now = 1'000'000'000;
  contention.prefer(3);
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.moves, 0) << "no thread computes";
  contention.seen(platform.now);
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.unit, 3);
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.moves, 1) << "it is there";
  platform.unit = 0;  // a core was idle when it woke up
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.moves, 1) << "not at each sleep";
  platform.now += first_belief / 2;
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.unit, 3);
  platform.unit = 0;
  platform.now += first_belief;
  contention.return_to_home_unit(platform);
  EXPECT_EQ(platform.unit, 0) << "no thread computes any more";
}

TEST_F(Idling, DoubtsALostTurnBetweenManyThatCameBackWhereRanksShareCores) {
  contention.doubt();
  for (int i = 0; i < 100; ++i) {
    platform.a_yield_takes = turn;
    until_sleep();
    EXPECT_FALSE(contention.holds(platform.now)) << "a rank that starts, or copies a long message";
    platform.a_yield_takes = short_yield;
    EXPECT_GT(until_sleep().yields, 8);
  }
  EXPECT_EQ(contention.times(), 100u) << "they are counted";
}

TEST_F(Idling, BelievesTheSecondLostTurnInARowWhereRanksShareCores) {
  contention.doubt();
  platform.a_yield_takes = turn;
  until_sleep();
  EXPECT_EQ(until_sleep().yields, 1);
  EXPECT_TRUE(contention.holds(platform.now)) << "a thread that computes takes each turn";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(until_sleep().yields, 0);
}

TEST_F(Idling, LeavesSomeYieldsUnwatchedAfterOnesThatCameBack) {
  const auto unwatched = [&] {
    for (int count = 0; count < 1'000; ++count) {
      const std::uint64_t before = platform.now;
      if (!contention.yields(platform) || platform.now - before != platform.a_yield_takes) return count;
    }
    return 1'000;
  };
  platform.a_yield_takes = short_yield;
  EXPECT_EQ(unwatched(), 0);
  EXPECT_EQ(unwatched(), 0) << "this rank has its core for itself";
  contention.doubt();
  EXPECT_EQ(unwatched(), 0) << "nothing is known yet";
  const int some = unwatched();
  EXPECT_GT(some, 8);
  EXPECT_LT(some, 40) << "others may begin to compute";
  EXPECT_EQ(unwatched(), some);
  platform.a_yield_takes = turn;
  EXPECT_EQ(unwatched(), some) << "not noticed";
  EXPECT_FALSE(contention.holds(platform.now)) << "one proves nothing";
  platform.a_yield_takes = short_yield;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(unwatched(), 0) << "one was lost";
  EXPECT_EQ(unwatched(), 0);
  EXPECT_EQ(unwatched(), some) << "enough have come back";
}

TEST_F(Idling, YieldsNoMoreWhereOneWhoComputesTakesEachTurn) {
  contention.doubt();
  platform.a_yield_takes = turn;
  EXPECT_TRUE(contention.yields(platform));
  EXPECT_TRUE(contention.yields(platform));
  EXPECT_FALSE(contention.yields(platform));
  EXPECT_TRUE(contention.holds(platform.now));
}

class PinnedToShare : public Idling {
 protected:
  static constexpr std::uint64_t first_return = 5'000'000, last_return = 1'000'000'000;
  PinnedToShare() {
    contention.doubt();
    platform.a_yield_takes = short_yield;
  }
  void yield_for(std::uint64_t ns) {
    for (const std::uint64_t end = platform.now + ns; platform.now < end;) contention.yields(platform);
  }
};

TEST_F(PinnedToShare, ComesBackMoreAndMoreSeldom) {
  contention.pin_to_share(platform, 3);
  EXPECT_EQ(platform.unit, 1) << "the second of two";
  platform.unit = 0;
  yield_for(first_return / 2);
  EXPECT_EQ(platform.moves, 1) << "not at once";
  yield_for(first_return);
  EXPECT_EQ(platform.unit, 1);
  yield_for(last_return);
  EXPECT_EQ(platform.moves, 2) << "it is there";
  for (int i = 0; i < 10; ++i) {
    platform.unit = 0;
    yield_for(last_return);
    EXPECT_EQ(platform.unit, 1);
  }
  platform.unit = 0;
  yield_for(last_return / 2);
  EXPECT_EQ(platform.unit, 0) << "it may have its reason";
}

TEST_F(PinnedToShare, ComesBackInLongerWaitsToo) {
  contention.pin_to_share(platform, 1);
  platform.unit = 0;
  Idle among_ranks(platform, {0, 2 * first_return, false}, contention);
  while (among_ranks.next() == Action::yield) continue;
  EXPECT_EQ(platform.unit, 1);
}

TEST_F(PinnedToShare, LeavesAloneWhoIsBoundAndOtherThreads) {
  platform.bound = true;
  contention.pin_to_share(platform, 1);
  yield_for(last_return);
  EXPECT_EQ(platform.moves, 0) << "bound before";
  platform.bound = false;
  contention.pin_to_share(platform, 1);
  platform.unit = 0;
  platform.bound = true;
  yield_for(last_return);
  EXPECT_EQ(platform.moves, 1) << "bound since then";
  platform.bound = false;
  platform.thread = &contention;
  yield_for(last_return);
  EXPECT_EQ(platform.moves, 1) << "another thread";
}

TEST_F(Idling, WhatOneHasFoundOutAllKnow) {
  platform.a_yield_takes = turn;
  until_sleep();
  Idle other(platform, {0, 10'000}, contention);
  EXPECT_EQ(other.next(), Action::sleep);
}

}  // namespace
}  // namespace canele::ltask
