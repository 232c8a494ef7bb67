// SPDX-License-Identifier: BSD-3-Clause
//
// Plans: which step waits for which, from the memory that steps touch; pools, cuts, and the ways round a group. One
// thread.
#include "comm/collectives/algorithms/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/algorithms/halving.hpp"
#include "comm/collectives/algorithms/layout.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

Call call_among(int size, int rank = 0) {
  Call call;
  call.size = size;
  call.rank = rank;
  return call;
}

/// Returns "2<0,1 …": steps and the steps that they wait for.
std::string needs_of(const Schedule& schedule) {
  std::vector<std::string> needs(schedule.steps().size());
  for (StepId id = 0; id < needs.size(); ++id) {
    for (const StepId after : schedule.after(schedule.steps()[id])) {
      needs[after] += (needs[after].empty() ? std::to_string(after) + "<" : ",") + std::to_string(id);
    }
  }
  std::string text;
  for (const std::string& some : needs) text += some.empty() ? "" : (text.empty() ? "" : " ") + some;
  return text;
}

TEST(Plan, ReadersWaitForTheWriterAndTheNextWriterForTheReaders) {
  Plan plan(call_among(4));
  const Range a = plan.scratch(100), b = plan.scratch(100);
  plan.receive(1, 0, a);
  plan.copy(a, b);
  plan.send(2, 0, a);
  plan.receive(1, 1, a);
  plan.send(3, 0, b);
  EXPECT_EQ(needs_of(std::move(plan).finish()), "1<0 2<0 3<1,2 4<1");
}

TEST(Plan, OnlyBytesThatMeetMatter) {
  Plan plan(call_among(4));
  const Range a = plan.output(0, 100);
  plan.send(1, 0, a.slice(0, 50));
  plan.receive(2, 0, a.slice(50, 50));
  plan.receive(2, 1, a.slice(49, 1));
  plan.send(1, 1, a);
  plan.receive(2, 2, a.slice(10, 80));
  EXPECT_EQ(needs_of(std::move(plan).finish()), "2<0 3<1,2 4<0,3");
}

TEST(Plan, OperandsAreCombinedInTheOrderOfTheProgram) {
  Plan plan(call_among(4));
  const Range sum = plan.output(0, 8), one = plan.scratch(8), two = plan.scratch(8);
  plan.receive(1, 0, one);
  plan.receive(2, 0, two);
  plan.append(two, sum);
  plan.append(one, sum);
  plan.send(3, 0, sum);
  EXPECT_EQ(needs_of(std::move(plan).finish()), "2<1 3<0,2 4<3");
}

/// Returns offset and length of each message of a plan whose only message is so long.
std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces_of(std::uint64_t length, std::uint64_t piece, bool sent,
                                                               Operation operation = Operation::gather) {
  Call call = call_among(4);
  call.operation = operation;
  Plan plan(call, piece);
  const Range all{sent ? Space::input : Space::output, 10, length};
  sent ? plan.send(1, slot_of(1, 2), all) : plan.receive(1, slot_of(1, 2), all);
  const Schedule schedule = std::move(plan).finish();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (std::uint32_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    EXPECT_EQ(step.slot, slot_of(1, 2) + i * most_phases * most_items);
    EXPECT_EQ(step.needs, 0u);
    const Range& range = sent ? step.from : step.to;
    found.emplace_back(range.offset - 10, range.length);
  }
  return found;
}

TEST(Plan, AMessageThatIsSomewhatTooLongGoesInPieces) {
  using Pieces = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  for (const bool sent : {true, false}) {
    EXPECT_EQ(pieces_of(640, 0, sent), Pieces({{0, 640}})) << "no limit";
    EXPECT_EQ(pieces_of(128, 128, sent), Pieces({{0, 128}}));
    EXPECT_EQ(pieces_of(129, 128, sent), Pieces({{0, 1}, {1, 128}})) << "what is over first";
    EXPECT_EQ(pieces_of(300, 150, sent), Pieces({{0, 44}, {44, 128}, {172, 128}})) << "whole lines";
    EXPECT_EQ(pieces_of(512, 128, sent).size(), 4u);
    EXPECT_EQ(pieces_of(1024, 128, sent).size(), most_pieces);
    EXPECT_EQ(pieces_of(1025, 128, sent), Pieces({{0, 1025}})) << "a long one is asked for";
    for (const Operation operation : {Operation::bcast, Operation::allgather, Operation::reduce}) {
      EXPECT_EQ(pieces_of(256, 128, sent, operation), Pieces({{0, 128}, {128, 128}}));
      EXPECT_EQ(pieces_of(257, 128, sent, operation), Pieces({{0, 257}})) << "there may be a quicker way";
    }
  }
}

TEST(Plan, WhoNeedsAMessageNeedsItsPieces) {
  Plan plan(call_among(4), 64);
  const Range a = plan.scratch(128), b = plan.output(0, 128);
  plan.receive(1, 0, a);
  plan.copy(a, b);
  plan.copy(a.slice(64, 64), plan.output(200, 64));
  plan.send(2, 0, b);
  EXPECT_EQ(needs_of(std::move(plan).finish()), "2<0,1 3<1 4<2 5<2");
}

bool begins_with_one_message(void (*write)(Plan&)) {
  Plan plan(call_among(4));
  write(plan);
  return std::move(plan).finish().begins_with_one_message();
}

TEST(Plan, BeginsWithOneMessageIfNothingElseHasToBeSentBefore) {
  static constexpr Range in{Space::input, 0, 8}, out{Space::output, 0, 8}, long_in{Space::input, 0, 5000};
  EXPECT_TRUE(begins_with_one_message([](Plan& p) { p.send(1, 0, in); }));
  EXPECT_TRUE(begins_with_one_message([](Plan& p) { p.receive(1, 0, out), p.send(2, 0, out), p.send(3, 0, out); }));
  EXPECT_TRUE(begins_with_one_message([](Plan& p) { p.copy(in, out), p.receive(1, 0, p.output(8, 8)); }));
  EXPECT_TRUE(begins_with_one_message([](Plan& p) {
    const Range some = p.scratch(8);
    p.copy(in, out), p.receive(1, 0, some), p.combine(some, out), p.send(2, 0, out);
  })) << "within a chain";
  EXPECT_FALSE(begins_with_one_message([](Plan& p) { p.receive(1, 0, out), p.receive(2, 0, p.output(8, 8)); }));
  EXPECT_FALSE(begins_with_one_message([](Plan& p) { p.receive(1, 0, out), p.send(1, 0, in); })) << "as in a ring";
  EXPECT_FALSE(begins_with_one_message([](Plan& p) {
    p.copy(in, out), p.send(1, 0, out), p.receive(1, 0, p.output(8, 8));
  })) << "the other one waits for what is sent after the copy";
  EXPECT_FALSE(begins_with_one_message([](Plan& p) { p.copy(long_in, p.output(8, 5000)), p.receive(1, 0, out); }))
      << "worth doing meanwhile";
  EXPECT_FALSE(begins_with_one_message([](Plan& p) { p.send(1, 0, in), p.receive(1, 0, out); }));
  EXPECT_FALSE(begins_with_one_message([](Plan& p) { p.inflight_limit(1), p.receive(1, 0, out), p.send(2, 0, out); }));
}

TEST(Plan, SpacesAreApartAndNothingIsNoStep) {
  Plan plan(call_among(4));
  plan.send(1, 0, {Space::input, 0, 8});
  plan.receive(1, 0, {Space::output, 0, 8});
  plan.send(1, 1, {Space::input, 0, 0});
  plan.copy(plan.output(0, 8), plan.output(0, 8));
  const Schedule schedule = std::move(plan).finish();
  EXPECT_EQ(schedule.steps().size(), 2U);
  EXPECT_EQ(needs_of(schedule), "");
}

TEST(Plan, TakesManyPiecesInAnyOrder) {
  // Compares with a table of bytes.
  constexpr std::uint64_t bytes = 64;
  std::uint64_t state = 12345;
  const auto roll = [&](std::uint64_t limit) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33U) % limit;
  };
  for (int round = 0; round < 200; ++round) {
    std::pmr::monotonic_buffer_resource memory;
    Hazards hazards(&memory);
    std::vector<StepId> writer(bytes, no_step);
    std::vector<std::vector<StepId>> readers(bytes);
    for (StepId step = 0; step < 40; ++step) {
      const std::uint64_t from = roll(bytes), length = 1 + roll(bytes - from);
      const bool writes = roll(3) == 0;
      std::vector<StepId> needs, expected;
      const Range range{Space::output, from, length};
      writes ? hazards.write(range, step, needs) : hazards.read(range, step, needs);
      for (std::uint64_t at = from; at < from + length; ++at) {
        const bool read = writes && !readers[at].empty();
        if (!read && writer[at] != no_step) expected.push_back(writer[at]);
        if (read) expected.insert(expected.end(), readers[at].begin(), readers[at].end());
        if (writes) {
          writer[at] = step;
          readers[at].clear();
        } else {
          readers[at].push_back(step);
        }
      }
      for (std::vector<StepId>* const list : {&needs, &expected}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
      ASSERT_EQ(needs, expected);
      bool all = true;
      for (std::uint64_t at = from; at < from + length; ++at) all = all && writer[at] != no_step;
      ASSERT_EQ(hazards.written(range), all);
    }
  }
}

TEST(Cut, PiecesCoverAllAndEndWithElements) {
  for (const std::uint64_t element : {1U, 3U, 16U}) {
    for (const std::uint64_t count : {0U, 1U, 7U, 100U, 4096U, 100'000U}) {
      const std::uint64_t length = count * element;
      for (const std::uint64_t segment : {0U, 1U, 10U, 4096U}) {
        const Cut cut = Cut::segments(length, element, segment);
        EXPECT_EQ(cut.count() == 0, length == 0);
        EXPECT_LE(cut.count(), most_segments);
        for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
          EXPECT_EQ(cut.at(piece) % element, 0U);
          EXPECT_GT(cut.length(piece), 0U);
          EXPECT_LE(cut.length(piece), cut.longest());
        }
        EXPECT_EQ(length == 0 ? 0 : cut.at(cut.count()), length);
      }
      const Cut even = Cut::even(length, element, 7);
      EXPECT_EQ(even.at(7), length);
      for (std::uint64_t piece = 0; piece < 7; ++piece) {
        EXPECT_LE(even.longest() - even.length(piece), element);
        EXPECT_EQ(even.at(piece) % element, 0U);
      }
    }
  }
}

TEST(Pool, TakesTurns) {
  Plan plan(call_among(2));
  Pool large(plan, 1'000'000, 100), small(plan, 8, 5), none(plan, 0, 9);
  const Range first = large.next(1'000'000), second = large.next(10);
  EXPECT_NE(first.offset, second.offset);
  EXPECT_EQ(large.next(1).offset, first.offset);
  EXPECT_NE(small.next(8).offset, small.next(8).offset);
  EXPECT_EQ(none.next(0).length, 0U);
}

TEST(Tree, EveryEdgeHasTwoEndsAndSubtreesAreRuns) {
  for (const Algorithm algorithm : {Algorithm::flat, Algorithm::binomial, Algorithm::k_nomial, Algorithm::chain}) {
    for (int n = 1; n <= 40; ++n) {
      for (int root = 0; root < n; ++root) {
        Choice choice;
        choice.algorithm = algorithm;
        choice.radix = 2 + static_cast<std::uint32_t>(n % 4);
        for (const bool ordered : {false, true}) {
          std::vector<int> parents(static_cast<std::size_t>(n), -1);
          int edges = 0;
          for (int rank = 0; rank < n; ++rank) {
            const Call call = call_among(n, rank);
            const Tree tree = ordered ? ordered_tree_of(call, choice, root) : tree_of(call, choice, root);
            EXPECT_EQ(tree.is_root(), rank == root);
            for (const Edge& child : tree.children) {
              const Call other = call_among(n, child.peer);
              const Tree below = ordered ? ordered_tree_of(other, choice, root) : tree_of(other, choice, root);
              ASSERT_EQ(below.parent.peer, rank);
              ++edges;
              if (ordered) {
                EXPECT_EQ(child.higher, child.peer > rank);
              } else {
                EXPECT_EQ(below.parent.size, child.size);
                EXPECT_EQ(below.parent.first, child.first);
              }
            }
          }
          ASSERT_EQ(edges, n - 1);
        }
      }
    }
  }
}

TEST(Fold, PairsTheFirstAndKeepsWhoIsWanted) {
  for (int n = 1; n <= 40; ++n) {
    for (int keep = -1; keep < n; ++keep) {
      const Fold fold(n, keep);
      EXPECT_LE(fold.cores(), n);
      EXPECT_GT(2 * fold.cores(), n);
      EXPECT_TRUE(keep < 0 || fold.core_of(keep) >= 0);
      for (int core = 0; core < fold.cores(); ++core) {
        EXPECT_EQ(fold.core_of(fold.position_of(core)), core);
        EXPECT_EQ(fold.standing_for(fold.first_of(core)), core);
        EXPECT_EQ(fold.standing_for(fold.first_of(core + 1) - 1), core);
      }
      EXPECT_EQ(fold.first_of(fold.cores()), n);
    }
  }
}

TEST(Layout, BlocksOneAfterTheOtherAreOneRun) {
  const std::size_t lengths[] = {4, 0, 6, 5}, offsets[] = {20, 99, 24, 0};
  Blocks blocks;
  blocks.lengths = lengths;
  blocks.offsets = offsets;
  const std::vector<Range> runs = runs_of(blocks, Space::output, 4, 0, 4);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].offset, 20U);
  EXPECT_EQ(runs[0].length, 10U);
  EXPECT_EQ(runs_of(blocks, Space::output, 4, 1, 1).size(), 0U);
  EXPECT_EQ(bounds_of(blocks, 4, 2, 4), (std::vector<std::uint64_t>{0, 6, 11, 15, 15}));
}

}  // namespace
}  // namespace canele::comm::collectives
