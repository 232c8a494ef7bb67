// SPDX-License-Identifier: BSD-3-Clause
//
// Messages and rounds are as many as theory says; limits, slots, late levels and bits are as promised. One thread.
//
// Rounds are the time of a model in which a message costs 1 (see clock.hpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/collectives/clock.hpp"
#include "tests/unit/collectives/world.hpp"

namespace canele::comm::collectives::model {
namespace {

int log2_up(int n) {
  int rounds = 0;
  for (int reach = 1; reach < n; reach *= 2) ++rounds;
  return rounds;
}
int log2_down(int n) { return n < 2 ? 0 : 1 + log2_down(n / 2); }

Choice plain(Algorithm algorithm) {
  Choice choice;
  choice.algorithm = algorithm;
  return choice;
}

/// Returns a call with enough elements for every rank to have some of each share.
Call call_of(Operation operation, int size, std::uint64_t length = 4096) {
  Call call;
  call.operation = operation;
  call.size = size;
  call.length = length;
  call.input.length = call.output.length = length;
  return call;
}

int sends_in(const std::vector<Schedule>& schedules) {
  int sends = 0;
  for (const Schedule& schedule : schedules) {
    for (const Step& step : schedule.steps()) sends += step.action == Action::send ? 1 : 0;
  }
  return sends;
}

/// Checks messages and rounds by size, for sizes of 1 to 64.
void expect_counts(const Call& like, const Choice& choice, const std::function<int(int)>& messages,
                   const std::function<int(int)>& rounds) {
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 20, 31, 32, 33, 63, 64}) {
    Call call = like;
    call.size = n;
    // A scatter from another root packs the subtree that wraps round the group, and sends it after packing.
    call.root = call.operation == Operation::scatter ? 0 : n / 3;
    const std::vector<Schedule> schedules = schedules_of(call, choice);
    const std::string text = std::string(name_of(call.operation)) + " " + std::string(name_of(choice.algorithm)) +
                             ", " + std::to_string(n) + " ranks";
    EXPECT_EQ(sends_in(schedules), messages(n)) << text;
    EXPECT_EQ(time_of(schedules, Costs{}), rounds(n)) << text;
  }
}

TEST(Counts, BinomialTreesHaveAMessageForEachRankAndLogarithmicRounds) {
  for (const Operation operation : {Operation::bcast, Operation::reduce, Operation::gather, Operation::scatter}) {
    expect_counts(
        call_of(operation, 1), plain(Algorithm::binomial), [](int n) { return n - 1; }, log2_up);
  }
}

TEST(Counts, OrderedTreesHaveOneRoundMoreAtMost) {
  for (int n = 1; n <= 33; ++n) {
    for (int root = 0; root < n; ++root) {
      Call call = call_of(Operation::reduce, n);
      call.commutes = false;
      call.root = root;
      const std::vector<Schedule> schedules = schedules_of(call, plain(Algorithm::binomial));
      EXPECT_EQ(sends_in(schedules), n - 1);
      EXPECT_LE(time_of(schedules, Costs{}), log2_up(n) + 1) << n << " ranks, root " << root;
    }
  }
}

TEST(Counts, FlatOnesHaveARoundForEachRank) {
  for (const Operation operation : {Operation::bcast, Operation::reduce, Operation::gather, Operation::scatter}) {
    expect_counts(
        call_of(operation, 1), plain(Algorithm::flat), [](int n) { return n - 1; }, [](int n) { return n - 1; });
  }
}

TEST(Counts, OfEachWithEachThereIsAMessageForEachPair) {
  for (const Operation operation :
       {Operation::barrier, Operation::allreduce, Operation::allgather, Operation::reduce_scatter}) {
    expect_counts(
        call_of(operation, 1), plain(Algorithm::flat), [](int n) { return n * (n - 1); }, [](int n) { return n - 1; });
  }
}

TEST(Counts, KNomialTreesHaveALevelForEachDigit) {
  for (const std::uint32_t radix : {2U, 3U, 4U, 8U}) {
    for (const int n : {2, 5, 9, 16, 27, 64}) {
      Choice choice = plain(Algorithm::k_nomial);
      choice.radix = radix;
      int levels = 0;
      for (std::uint32_t reach = 1; reach < static_cast<std::uint32_t>(n); reach *= radix) ++levels;
      for (const Operation operation : {Operation::bcast, Operation::reduce}) {
        const std::vector<Schedule> schedules = schedules_of(call_of(operation, n), choice);
        EXPECT_EQ(sends_in(schedules), n - 1);
        EXPECT_LE(time_of(schedules, {1, 0, 0, 0}), levels) << n << " ranks, radix " << radix;
      }
    }
  }
}

TEST(Counts, DisseminationAndBruckHaveAMessageOfEachRankInEachRound) {
  const auto messages = [](int n) { return n * log2_up(n); };
  expect_counts(call_of(Operation::barrier, 1), plain(Algorithm::dissemination), messages, log2_up);
  expect_counts(call_of(Operation::allgather, 1), plain(Algorithm::bruck), messages, log2_up);
  expect_counts(call_of(Operation::alltoall, 1, 8), plain(Algorithm::bruck), messages, log2_up);
}

TEST(Counts, DoublingHasLogarithmicRoundsAndTwoMoreForFoldedRanks) {
  const auto folded = [](int n) { return n - (1 << log2_down(n)); };
  const auto messages = [&](int n) { return (n - folded(n)) * log2_down(n) + 2 * folded(n); };
  const auto rounds = [&](int n) { return log2_down(n) + (folded(n) == 0 ? 0 : 2); };
  expect_counts(call_of(Operation::allreduce, 1), plain(Algorithm::recursive), messages, rounds);
  const auto twice = [&](int n) { return (n - folded(n)) * 2 * log2_down(n) + 2 * folded(n); };
  const auto there_and_back = [&](int n) { return 2 * log2_down(n) + (folded(n) == 0 ? 0 : 2); };
  expect_counts(call_of(Operation::allreduce, 1), plain(Algorithm::halving_doubling), twice, there_and_back);
}

TEST(Counts, DoublingOfBlocksIsThatWherePowersOfTwoMeet) {
  for (const int n : {2, 4, 8, 16, 32, 64}) {
    for (const Operation operation : {Operation::allgather, Operation::reduce_scatter}) {
      const std::vector<Schedule> schedules = schedules_of(call_of(operation, n), plain(Algorithm::recursive));
      EXPECT_EQ(sends_in(schedules), n * log2_up(n));
      EXPECT_EQ(time_of(schedules, Costs{}), log2_up(n));
    }
  }
}

TEST(Counts, RingsGoRoundOnceOrTwice) {
  expect_counts(
      call_of(Operation::allreduce, 1), plain(Algorithm::ring), [](int n) { return 2 * n * (n - 1); },
      [](int n) { return 2 * (n - 1); });
  for (const Operation operation : {Operation::allgather, Operation::reduce_scatter}) {
    expect_counts(
        call_of(operation, 1), plain(Algorithm::ring), [](int n) { return n * (n - 1); }, [](int n) { return n - 1; });
  }
}

TEST(Counts, ChainsAddTheRanksAndTheSegments) {
  Choice choice = plain(Algorithm::chain);
  choice.segment = 100;  // 41 of them
  for (const Operation operation : {Operation::bcast, Operation::reduce, Operation::scan, Operation::exscan}) {
    expect_counts(
        call_of(operation, 1), choice, [](int n) { return 41 * (n - 1); },
        [](int n) { return n == 1 ? 0 : n - 1 + 40; });
  }
}

TEST(Counts, ScansDouble) {
  const auto messages = [](int n) {
    int sends = 0;
    for (int away = 1; away < n; away *= 2) sends += n - away;
    return sends;
  };
  expect_counts(call_of(Operation::scan, 1), plain(Algorithm::recursive), messages, log2_up);
  expect_counts(call_of(Operation::exscan, 1), plain(Algorithm::recursive), messages, log2_up);
}

TEST(Counts, BroadcastsInTwoPhasesSendNoPieceToWhoHasIt) {
  for (const int n : {2, 3, 7, 8, 16, 33}) {
    const std::uint64_t length = 4096;
    std::uint64_t bytes = 0, received = 0;
    for (const Schedule& schedule : schedules_of(call_of(Operation::bcast, n, length), plain(Algorithm::two_phases))) {
      std::uint64_t own = 0;
      for (const Step& step : schedule.steps()) {
        if (step.action == Action::send) bytes += step.from.length;
        if (step.action == Action::receive) own += step.to.length;
      }
      received += own;
      EXPECT_TRUE(own == length || own == 0) << n << " ranks";
    }
    EXPECT_EQ(bytes, received);
    EXPECT_EQ(bytes, length * static_cast<std::uint64_t>(n - 1));
  }
}

/// Calls `with` on every algorithm of every operation.
void with_each(const std::function<void(Operation, const Choice&)>& with) {
  for (const Operation operation : every_operation) {
    for (int number = 1; number <= last_algorithm; ++number) {
      Choice choice = plain(static_cast<Algorithm>(number));
      choice.radix = choice.algorithm == Algorithm::k_nomial ? 4 : 0;
      if (has(operation, choice.algorithm)) with(operation, choice);
    }
  }
}

TEST(Counts, NothingIsNoMessage) {
  with_each([](Operation operation, const Choice& choice) {
    if (operation == Operation::barrier) return;
    EXPECT_EQ(sends_in(schedules_of(call_of(operation, 7, 0), choice)), 0) << name_of(operation);
  });
}

TEST(Counts, EveryMessageBetweenTwoRanksHasASlotOfItsOwn) {
  with_each([](Operation operation, const Choice& choice) {
    for (const int n : {3, 300}) {
      Call call = call_of(operation, n, 30000);
      call.rank = n / 2;
      std::set<std::tuple<Action, int, std::uint32_t>> used;
      const Schedule schedule = schedule_of(call, choice);
      for (const Step& step : schedule.steps()) {
        if (step.action != Action::send && step.action != Action::receive) continue;
        EXPECT_LT(step.slot, 1U << 20U);
        EXPECT_TRUE(used.emplace(step.action, step.peer, step.slot).second) << name_of(operation);
      }
    }
  });
}

TEST(Counts, ManySmallSegmentsBecomeFewerLargerOnes) {
  Call call = call_of(Operation::bcast, 2, 10'000'000);
  Choice choice = plain(Algorithm::chain);
  choice.segment = 1;
  EXPECT_LE(sends_in(schedules_of(call, choice)), 4096);
  choice.segment = 4096;
  EXPECT_EQ(sends_in(schedules_of(call, choice)), 2442);
}

TEST(InflightLimit, AllReceivesArePostedAtTheStart) {
  for (const bool in_place : {false, true}) {
    Call call = call_of(Operation::alltoall, 9);
    call.in_place = in_place;
    call.rank = 4;
    Choice choice = plain(Algorithm::flat);
    choice.inflight_limit = 2;
    int receives = 0, next = 5;
    const Schedule schedule = schedule_of(call, choice);
    EXPECT_EQ(schedule.inflight_limit(), 2U);
    for (const Step& step : schedule.steps()) {
      if (step.action == Action::receive) {
        EXPECT_EQ(step.needs, 0U);
        ++receives;
      }
      if (step.action == Action::send) {
        EXPECT_EQ(receives, 8) << "before the first send";
        EXPECT_EQ(step.peer, next) << "so that not all send to the same";
        next = (next + 1) % 9;
      }
    }
  }
}

TEST(InflightLimit, NoMoreSendsThanItAreUnderWayAndTheResultIsTheSame) {
  for (const bool in_place : {false, true}) {
    std::set<std::uint64_t> digests;
    for (const std::uint32_t inflight_limit : {0U, 1U, 2U, 5U, 8U, 100U}) {
      Case what{Operation::alltoall, plain(Algorithm::flat), 9, 0, 50, in_place, Element::sum, Shape::equal};
      what.choice.inflight_limit = inflight_limit;
      std::uint32_t most = 0;
      for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        World world(what, 5);
        ASSERT_EQ(world.run(seed), "") << what.text() << ", seed " << seed;
        most = std::max(most, world.seen().most_sends);
        digests.insert(world.digest());
      }
      EXPECT_EQ(most, inflight_limit == 0 ? 8U : std::min(inflight_limit, 8U)) << "and that many are made use of";
    }
    EXPECT_EQ(digests.size(), 1U);
  }
}

/// Returns the steps that `step` waits for, directly or through others. At most `levels` levels of a tree are wide.
std::vector<std::vector<bool>> ancestors_of(const Schedule& schedule) {
  const std::size_t count = schedule.steps().size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (StepId id = 0; id < count; ++id) {
    for (const StepId after : schedule.after(schedule.steps()[id])) {
      for (StepId other = 0; other < count; ++other) before[after][other] = before[after][other] || before[id][other];
      before[after][id] = true;
    }
  }
  return before;
}

/// Returns whether the step is left to the thread that calls or waits, if so many levels are.
bool is_late(const Step& step, std::uint32_t levels) { return step.level != 0 && step.level <= levels; }

TEST(Levels, AreNumberedFromTheWidestOn) {
  for (const Operation operation : {Operation::bcast, Operation::scatter, Operation::reduce, Operation::gather}) {
    for (const int n : {2, 5, 8, 13, 16}) {
      for (std::uint32_t late = 0; late <= 5; ++late) {
        int sends = 0, receives = 0, expected = 0;
        for (int left = n, level = 1; level <= static_cast<int>(late); ++level) {
          expected += left / 2;
          left = (left + 1) / 2;
        }
        for (const Schedule& schedule : schedules_of(call_of(operation, n), plain(Algorithm::binomial))) {
          EXPECT_EQ(schedule.radix(), 2U);
          for (const Step& step : schedule.steps()) {
            sends += is_late(step, late) && step.action == Action::send ? 1 : 0;
            receives += is_late(step, late) && step.action == Action::receive ? 1 : 0;
          }
        }
        EXPECT_EQ(sends, expected) << name_of(operation) << ", " << n << " ranks, " << late << " levels";
        EXPECT_EQ(receives, expected);
      }
    }
  }
}

TEST(Levels, OfTheWidestAreFirstOnTheWayToTheRootAndLastOnTheWayFromIt) {
  for (const Operation operation : {Operation::bcast, Operation::scatter, Operation::reduce, Operation::gather}) {
    const bool to_root = operation == Operation::reduce || operation == Operation::gather;
    for (const Schedule& schedule : schedules_of(call_of(operation, 16), plain(Algorithm::binomial))) {
      const std::vector<std::vector<bool>> before = ancestors_of(schedule);
      for (StepId step = 0; step < before.size(); ++step) {
        for (StepId other = 0; other < before.size(); ++other) {
          const Step &later = schedule.steps()[step], &earlier = schedule.steps()[other];
          const bool moves = later.action != Action::copy && earlier.action != Action::copy;
          if (!before[step][other] || !moves) continue;
          const bool late = is_late(later, 2), before_it = is_late(earlier, 2);
          EXPECT_FALSE(to_root ? late && !before_it : !late && before_it) << name_of(operation);
        }
      }
    }
  }
}

TEST(Bits, AreTheSameInEveryOrderAndOnEveryRank) {
  with_each([](Operation operation, const Choice& choice) {
    for (const int n : {3, 6, 8, 13}) {
      Case what{operation, choice, n, n / 2, 29, false, Element::real, Shape::equal};
      if (!what.reduces()) return;
      what.choice.segment = 40;
      std::set<std::uint64_t> digests;
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        World world(what, 3);
        ASSERT_EQ(world.run(seed), "") << what.text() << ", seed " << seed;
        digests.insert(world.digest());
        if (operation != Operation::allreduce) continue;
        for (const Rank& rank : world.ranks()) EXPECT_EQ(rank.output, world.ranks()[0].output) << what.text();
      }
      EXPECT_EQ(digests.size(), 1U) << what.text();
    }
  });
}

}  // namespace
}  // namespace canele::comm::collectives::model
