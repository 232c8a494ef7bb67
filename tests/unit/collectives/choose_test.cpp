// SPDX-License-Identifier: BSD-3-Clause
//
// The choice is equal on all ranks, can be executed, and is about as fast as the best algorithm. One thread.
//
// The speed of an algorithm is measured with a clock that plays all its messages (clock.hpp). The closed forms of
// choose() are compared with that clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/collectives/clock.hpp"
#include "tests/unit/collectives/world.hpp"

namespace canele::comm::collectives::model {
namespace {

bool same(const Choice& a, const Choice& b) {
  return a.algorithm == b.algorithm && a.radix == b.radix && a.segment == b.segment &&
         a.inflight_limit == b.inflight_limit && a.piece == b.piece;
}

TEST(Choose, TheSameOnAllRanks) {
  for (const Operation operation : every_operation) {
    for (const int n : {1, 2, 7, 64, 1000}) {
      for (const std::uint64_t length : {0ULL, 8ULL, 5000ULL, 100'000ULL, 50'000'000ULL}) {
        Call call = collective(operation, n, length);
        const Choice root = choose(call, {}, {});
        call.rank = n - 1;
        // Differs between ranks: only the root has it, or each rank decides for itself.
        call.in_place = operation != Operation::bcast;
        if (operation == Operation::gather) call.output = {};
        if (operation == Operation::scatter) call.input = {};
        EXPECT_TRUE(same(choose(call, {}, {}), root)) << name_of(operation) << ", " << n << " ranks, " << length;
      }
    }
  }
}

TEST(Choose, DoesNotLookAtLengthsThatOnlySomeRanksKnow) {
  const std::vector<std::size_t> lengths = {100, 1'000'000, 0, 5};
  for (const Operation operation : {Operation::gather, Operation::scatter, Operation::alltoall}) {
    Call one = collective(operation, 4, 7), other = collective(operation, 4, 1'000'000);
    one.irregular = other.irregular = true;
    one.output.lengths = one.input.lengths = lengths.data();
    const Choice choice = choose(one, {}, {});
    EXPECT_TRUE(same(choice, choose(other, {}, {})));
    EXPECT_EQ(choice.algorithm, Algorithm::flat);
  }
}

TEST(Choose, LeavesNothingOpenAndTakesOnlyWhatTheOperationHas) {
  for (const Operation operation : every_operation) {
    for (const int n : {1, 2, 3, 8, 100}) {
      for (const std::uint64_t length : {0U, 4U, 4000U, 4'000'000U}) {
        for (int asked = 0; asked <= last_algorithm; ++asked) {
          Choice wish;
          wish.algorithm = static_cast<Algorithm>(asked);
          if (asked != 0 && !has(operation, wish.algorithm)) continue;
          const Choice choice = choose(collective(operation, n, length), wish, {});
          EXPECT_TRUE(has(operation, choice.algorithm));
          EXPECT_TRUE(asked == 0 || choice.algorithm == wish.algorithm) << "what can be done is done";
          EXPECT_TRUE(choice.algorithm != Algorithm::k_nomial || choice.radix >= 2);
          EXPECT_TRUE(operation != Operation::alltoall || choice.algorithm != Algorithm::flat ||
                      choice.inflight_limit > 0);
          EXPECT_TRUE(choice.segment == 0 || length / choice.segment < 512);
          EXPECT_GE(time_of(collective(operation, n, length), choice, {}), 0);
        }
      }
    }
  }
}

TEST(Choose, TakesWhatIsAskedFor) {
  Choice wish;
  wish.algorithm = Algorithm::k_nomial;
  wish.radix = 5;
  wish.segment = 1000;
  const Choice tree = choose(collective(Operation::bcast, 9, 10'000), wish, {});
  EXPECT_TRUE(same(tree, wish));
  wish = {};
  wish.algorithm = Algorithm::flat;
  wish.inflight_limit = 3;
  EXPECT_TRUE(same(choose(collective(Operation::alltoall, 9, 10'000), wish, {}), wish));
}

TEST(Choose, KeepsTheOrderOfOperands) {
  for (const Operation operation : {Operation::allreduce, Operation::reduce_scatter}) {
    Call call = collective(operation, 9, 4'000'000);
    call.commutes = false;
    Choice wish;
    wish.algorithm = Algorithm::ring;
    EXPECT_EQ(choose(call, wish, {}).algorithm, Algorithm::recursive);
    EXPECT_NE(choose(call, {}, {}).algorithm, Algorithm::ring);
  }
}

TEST(Choose, RingsThatWouldRunOutOfSlotsAreNotTaken) {
  Choice wish;
  wish.algorithm = Algorithm::ring;
  EXPECT_EQ(choose(collective(Operation::allreduce, 100'000, 1 << 30), wish, {}).algorithm, Algorithm::recursive);
  wish.algorithm = Algorithm::two_phases;
  EXPECT_EQ(choose(collective(Operation::bcast, 100'000, 1 << 30), wish, {}).algorithm, Algorithm::binomial);
}

TEST(Choose, NamesAreThereAndBack) {
  for (int number = 0; number <= last_algorithm; ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    EXPECT_EQ(algorithm_named(name_of(algorithm)), algorithm);
  }
  EXPECT_EQ(algorithm_named("fastest"), Algorithm::automatic);
  EXPECT_EQ(name_of(Operation::reduce_scatter), "reduce_scatter");
}

struct Point {
  double chosen = 0, best = 0;
  std::string text;
};

/// Returns whether every rank exchanges with every other where other algorithms have fewer messages. Over a network
/// that needs a connection for each pair, and many peers connect to one rank at a time.
bool is_for_oversubscribed_only(Operation operation, Algorithm algorithm) {
  return algorithm == Algorithm::flat && (operation == Operation::barrier || operation == Operation::allreduce ||
                                          operation == Operation::allgather || operation == Operation::reduce_scatter);
}

/// Returns the clock's times for the chosen algorithm, and for the best one.
Point play(const Call& call, const Network& network) {
  const Costs costs{static_cast<double>(network.latency_ns), static_cast<double>(network.gap_ns),
                    1e9 / static_cast<double>(network.bytes_per_second), 0.1};
  Point point;
  const Choice choice = choose(call, {}, network);
  point.chosen = point.best = time_of(schedules_of(call, choice), costs);
  point.text = std::string(name_of(call.operation)) + ", " + std::to_string(call.size) + " ranks, " +
               std::to_string(call.length) + " bytes: " + std::string(name_of(choice.algorithm)) + " " +
               std::to_string(point.chosen);
  for (int number = 1; number <= last_algorithm; ++number) {
    Choice wish;
    wish.algorithm = static_cast<Algorithm>(number);
    if (!has(call.operation, wish.algorithm) || is_for_oversubscribed_only(call.operation, wish.algorithm)) continue;
    const Choice other = choose(call, wish, network);
    const double time = time_of(schedules_of(call, other), costs);
    point.text += ", " + std::string(name_of(wish.algorithm)) + " " + std::to_string(time) + " (" +
                  std::to_string(time_of(call, other, network)) + ")";
    point.best = std::min(point.best, time);
  }
  return point;
}

TEST(Choose, IsWithinATenthOfTheBestInNineOfTenCases) {
  int points = 0, good = 0;
  std::string others;
  for (const Network& network : {Network{1000, 300, 10'000'000'000}, Network{15000, 2000, 1'000'000'000}}) {
    for (const Operation operation : every_operation) {
      for (const int n : {2, 5, 8, 16, 33}) {
        for (const std::uint64_t length : {8U, 2048U, 40'000U, 1'000'000U}) {
          if (length > 40'000 && n > 16) continue;
          const Point point = play(collective(operation, n, length), network);
          ++points;
          if (point.chosen <= 1.1 * point.best) {
            ++good;
          } else {
            others += point.text + "\n";
          }
        }
      }
    }
  }
  EXPECT_GE(good * 10, points * 9) << good << " of " << points << "; not:\n" << others;
}

TEST(Choose, PiecesAreForWhatIsSentWhole) {
  Network host{150, 40, 24'000'000'000, 2};
  host.piece = 16'000;
  EXPECT_EQ(choose(collective(Operation::gather, 2, 65'536), {}, host).piece, 16'000u);
  EXPECT_EQ(choose(collective(Operation::gather, 2, 65'536), {}, {}).piece, 0u) << "several hosts";
  EXPECT_EQ(choose(collective(Operation::alltoall, 4, 65'536), {}, host).piece, 0u);
  Choice segments;
  segments.algorithm = Algorithm::chain;
  segments.segment = 64'000;
  EXPECT_EQ(choose(collective(Operation::bcast, 4, 1 << 20), segments, host).piece, 0u);
}

}  // namespace
}  // namespace canele::comm::collectives::model
