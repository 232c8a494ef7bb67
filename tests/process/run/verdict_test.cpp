// SPDX-License-Identifier: BSD-3-Clause
//
// The rules of ending a job, one by one, without processes. One thread. Statuses are made as waitpid() makes them: the
// code shifted by 8, or the signal.
#include "apps/run/verdict.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "apps/run/wording.hpp"

namespace canele::run {
namespace {

using Then = Verdict::Then;

RankEnd ended(int rank, int code, bool joined, bool left, bool anyone) {
  return {rank, 100 + rank, code << 8, joined, left, anyone};
}

TEST(Verdict, AllWell) {
  Verdict verdict(2, false);
  EXPECT_EQ(verdict.rank_ended(ended(0, 0, true, true, true)), Then::nothing);
  EXPECT_EQ(verdict.rank_ended(ended(1, 0, true, true, true)), Then::nothing);
  verdict.conclude();
  EXPECT_EQ(verdict.code(), 0);
  EXPECT_TRUE(verdict.take_messages().empty());
}

TEST(Verdict, FirstCodeCounts) {
  Verdict verdict(3, false);
  EXPECT_EQ(verdict.rank_ended(ended(1, 3, true, true, true)), Then::wait_for_others);
  EXPECT_EQ(verdict.rank_ended(ended(0, 4, true, true, true)), Then::wait_for_others);
  EXPECT_EQ(verdict.rank_ended(ended(2, 0, true, true, true)), Then::nothing);
  EXPECT_TRUE(verdict.take_messages().empty()) << "said at the end only";
  verdict.conclude();
  EXPECT_EQ(verdict.code(), 3);
  EXPECT_EQ(verdict.take_messages().size(), 2u);
}

TEST(Verdict, AllAlikeIsOneLine) {
  Verdict verdict(2, false);
  verdict.rank_ended(ended(0, 77, false, false, false));
  verdict.rank_ended(ended(1, 77, false, false, false));
  verdict.conclude();
  EXPECT_EQ(verdict.code(), 77);
  EXPECT_EQ(verdict.take_messages(), (std::vector<std::string>{"all 2 ranks exited with code 77"}));
}

TEST(Verdict, EqualLinesAreFolded) {
  Verdict verdict(12, true);
  for (const int rank : {9, 3, 1, 2}) verdict.rank_ended(ended(rank, 4, true, false, true));
  verdict.rank_ended(ended(5, 6, true, false, true));
  EXPECT_EQ(verdict.take_messages(),
            (std::vector<std::string>{"ranks 1-3, 9 exited with code 4", "rank 5 (pid 105) exited with code 6"}));
}

TEST(Wording, NamesRanksAndStates) {
  EXPECT_EQ(name_ranks({3}, 4), "rank 3");
  EXPECT_EQ(name_ranks({0}, 1), "rank 0");
  EXPECT_EQ(name_ranks({4, 3}, 8), "ranks 3, 4");
  EXPECT_EQ(name_ranks({7, 1, 2, 0, 5}, 8), "ranks 0-2, 5, 7");
  EXPECT_EQ(name_ranks({1, 0}, 2), "all 2 ranks");
  EXPECT_EQ(name_states({{'S', {0, 1}}, {'T', {2}}}, 3), "ranks 0, 1 are asleep, rank 2 is stopped");
}

TEST(Verdict, DeathInTheJobEndsIt) {
  Verdict verdict(4, false);
  EXPECT_EQ(verdict.rank_ended({2, 1234, SIGSEGV, true, false, true}), Then::end_job);
  const std::vector<std::string> messages = verdict.take_messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "rank 2 (pid 1234) died by signal 11 (Segmentation fault)");
  verdict.ending();
  EXPECT_EQ(verdict.rank_ended({1, 1233, SIGTERM, true, false, true}), Then::nothing);
  EXPECT_TRUE(verdict.take_messages().empty()) << "we killed that one";
  EXPECT_EQ(verdict.code(), 139);
}

TEST(Verdict, FailureOutsideEndsTheJobOnceSomebodyJoins) {
  Verdict verdict(3, false);
  EXPECT_EQ(verdict.rank_ended(ended(0, 3, false, false, false)), Then::wait_for_others);
  EXPECT_EQ(verdict.someone_joined(), Then::end_job);
  EXPECT_EQ(verdict.take_messages().size(), 1u);
  EXPECT_EQ(verdict.code(), 3);
}

TEST(Verdict, LeavingWithoutJoining) {
  Verdict before(2, false);
  EXPECT_EQ(before.rank_ended(ended(0, 0, false, false, false)), Then::nothing) << "a plain program";
  EXPECT_EQ(before.someone_joined(), Then::end_job);
  EXPECT_EQ(before.code(), 1);
  EXPECT_EQ(before.someone_joined(), Then::nothing) << "said once";
  Verdict after(2, false);
  EXPECT_EQ(after.rank_ended(ended(0, 0, false, false, true)), Then::end_job);
}

TEST(Verdict, KeepGoing) {
  Verdict verdict(3, true);
  EXPECT_EQ(verdict.rank_ended({1, 9, SIGKILL, true, false, true}), Then::nothing);
  EXPECT_EQ(verdict.take_messages().size(), 1u);
  const std::vector<Verdict::Death> deaths = verdict.take_deaths();
  ASSERT_EQ(deaths.size(), 1u);
  EXPECT_EQ(deaths[0].rank, 1);
  EXPECT_EQ(deaths[0].code, 137);
  EXPECT_TRUE(verdict.take_deaths().empty());
  EXPECT_EQ(verdict.code(), 137);
}

TEST(Verdict, AbortCodes) {
  for (const auto& [given, expected] : {std::pair(7, 7), std::pair(256, 1), std::pair(-1, 255), std::pair(0, 1)}) {
    Verdict verdict(2, true);
    EXPECT_EQ(verdict.aborted(1, 9, given, ""), Then::end_job) << "even with --keep-going";
    EXPECT_EQ(verdict.code(), expected);
  }
}

TEST(Verdict, InterruptedIsQuiet) {
  Verdict verdict(2, false);
  verdict.interrupted();
  EXPECT_EQ(verdict.rank_ended({0, 9, SIGINT, true, false, true}), Then::wait_for_others);
  verdict.conclude();
  EXPECT_TRUE(verdict.take_messages().empty());
  EXPECT_EQ(verdict.code(), 130);
}

}  // namespace
}  // namespace canele::run
