// SPDX-License-Identifier: BSD-3-Clause
//
// What canele-model reads and shows: profiles, values, shares, the tables of split trees and placements. One thread.
//
// The models of trees and placements have tests of their own, in tests/unit/collectives. This test checks that the
// tables agree with them.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/model/alphas.hpp"
#include "apps/model/input.hpp"
#include "apps/model/placement.hpp"
#include "apps/model/report.hpp"
#include "apps/model/split_tree.hpp"

namespace canele::model {
namespace {

using nlohmann::json;

class File {
 public:
  explicit File(const std::string& text, const std::string& name = "canele-model.json")
      : path_(testing::TempDir() + name) {
    std::ofstream(path_) << text;
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Checks that the text of the exception is `what`.
template <class Action>
void expect_refused(Action action, const std::string& what) {
  try {
    action();
    ADD_FAILURE() << "not refused: " << what;
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find(what), std::string::npos) << problem.what();
  }
}

std::string profile(int rank, double wall_s, int waits, double least_wait_s) {
  json made = {{"canele_profile", 1},
               {"rank", rank},
               {"ranks", 2},
               {"wall_s", wall_s},
               {"mpi_s", wall_s / 4},
               {"application_s", wall_s * 3 / 4},
               {"overlappable_s", 1},
               {"threads_not_counted", 0},
               {"threads", {{{"main", true}, {"mpi_s", 1}}}}};
  for (const char* name : {"blocking", "init", "test", "wait", "other"}) {
    made["classes"][name] = {{"count", 0}, {"total_s", 0}, {"min_s", 0}, {"max_s", 0}};
  }
  made["classes"]["wait"] = {{"count", waits}, {"total_s", 1}, {"min_s", least_wait_s}};
  made["classes"]["other"]["total_s"] = 0.5;
  return made.dump();
}

TEST(Profiles, AreMeansOfTheRanksAndLeastTimesOfAll) {
  const File first(profile(0, 4, 10, 0.2), "canele-model-0.json"),
      second(profile(1, 8, 30, 0.1), "canele-model-1.json");
  const Observed run = read_profiles({first.path(), second.path()});
  EXPECT_DOUBLE_EQ(run.time_s, 6);
  EXPECT_DOUBLE_EQ(run.compute_s, 4.5);
  EXPECT_DOUBLE_EQ(*run.mpi_s, 1.5);
  EXPECT_DOUBLE_EQ(run.wait.count, 20);
  EXPECT_DOUBLE_EQ(run.wait.least_s, 0.1);
  EXPECT_DOUBLE_EQ(run.init.count, 0);
  EXPECT_DOUBLE_EQ(run.other_s, 0.5);
  EXPECT_TRUE(run.remarks.empty());
}

TEST(Profiles, OfOneRankOrOfManyThreadsAreTold) {
  json threads = json::parse(profile(0, 4, 10, 0.2));
  threads["threads"].push_back({{"main", false}, {"mpi_s", 0.25}});
  threads["threads_not_counted"] = 3;
  const File file(threads.dump());
  const std::vector<std::string> remarks = read_profiles({file.path()}).remarks;
  ASSERT_EQ(remarks.size(), 3U);
  EXPECT_NE(remarks[0].find("0.25 s in MPI"), std::string::npos);
  EXPECT_NE(remarks[1].find("3 threads are not in the profile"), std::string::npos);
  EXPECT_NE(remarks[2].find("1 of 2 ranks"), std::string::npos);
}

TEST(Profiles, ThatAreNoneAreRefused) {
  const File empty("{}"), broken("{", "canele-model-b.json"), good(profile(0, 4, 10, 0.2), "canele-model-0.json");
  expect_refused([&] { read_profiles({empty.path()}); }, "is not a profile; expected: a file of CANELE_PROFILE");
  expect_refused([&] { read_profiles({broken.path()}); }, "is not JSON");
  expect_refused([&] { read_profiles({"/no/such/file"}); }, "/no/such/file cannot be read");
  expect_refused([&] { read_profiles({good.path(), good.path()}); }, "are both of rank 0");
}

TEST(Values, ThatAreWrongAreRefused) {
  const auto refused = [](const std::string& text, const std::string& what) {
    const File file(text);
    expect_refused([&] { read_values(file.path()); }, what);
  };
  refused("[]", "is an empty list");
  refused(R"({"time_s": 1})", "has no \"compute_s\"");
  refused(R"({"time_s": 1, "compute_s": -1})", "not a number; expected: at least 0");
  refused(R"({"time_s": 1, "compute_s": 1, "wait": {"mins_s": 1}})", "has \"mins_s\"; expected: one of count, min_s");
  refused(R"({"time_s": 1, "computes": 1})", "has \"computes\"; expected: one of blocking, compute_s");
}

TEST(Judge, WantsFewerDedicatedCoresThanThereAre) {
  const Case run{"x", {.time_s = 2, .compute_s = 1, .overlappable_s = 0}, {}, 1.6, {}};
  expect_refused([&] { judge(run, {0, 1, {0}}, nullptr); }, "expected: --cores");
  expect_refused([&] { judge(run, {2, 2, {0}}, nullptr); }, "2 of 2 cores cannot be given up");
  const json judged = judge(run, {3, 1, {0, 1}}, nullptr);
  EXPECT_DOUBLE_EQ(judged["predictions"][0]["total_s"], 1.5);
  EXPECT_DOUBLE_EQ(judged["predictions"][0]["error"], 1.5 / 1.6 - 1);
  EXPECT_EQ(judged["predictions"].size(), 2U);
  EXPECT_DOUBLE_EQ(judged["predictions"][1]["terms"]["compute"], 1.5);
}

TEST(Alphas, AreOneOrSomeOrASweep) {
  using Shares = std::vector<double>;
  EXPECT_EQ(parse_alphas("0.5"), Shares{0.5});
  EXPECT_EQ(parse_alphas("0,1"), (Shares{0, 1}));
  EXPECT_EQ(parse_alphas("0:1:0.25"), (Shares{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(parse_alphas("0:1:0.1").size(), 11U);
  for (const char* text : {"", "x", "0.5x", "-1", "2", "0,", "0:1", "1:0:0.1", "0:1:0", "0:1:0.001", "0:1:nan"}) {
    expect_refused([&] { parse_alphas(text); }, "expected a share from 0 to 1");
  }
}

TEST(SplitTables, HaveTheKnownAnswersFor64Cores) {
  const json tables = split_tables({});
  EXPECT_EQ(tables["rows"].size(), 32U);  // 32 to 63
  const json changes = {{{"best_split", 0}, {"ranks", 32}},
                        {{"best_split", 1}, {"ranks", 52}},
                        {{"best_split", 2}, {"ranks", 58}},
                        {{"best_split", 3}, {"ranks", 62}}};
  EXPECT_EQ(tables["changes"], changes);
  EXPECT_EQ(tables["best"]["ranks"], 51);
  EXPECT_EQ(tables["best"]["best_split"], 0);
  EXPECT_NEAR(tables["best"]["overlapped"], 7.53, 0.005);
  const json& row = tables["rows"][60 - 32];
  EXPECT_EQ(row["messages"], (json{30, 15, 7, 4, 2, 1}));
  EXPECT_EQ(row["overlapped"][0], 17.0);
  EXPECT_EQ(row["nonblocking"][6], 6.0);
  EXPECT_EQ(row["best_split"], 2);
}

TEST(SplitTables, AreOfAnyNodeAndSize) {
  EXPECT_EQ(split_tables({.cores = 2})["rows"].size(), 1U);
  EXPECT_EQ(split_tables({.cores = 64, .from = 60, .to = 60, .variable = true})["rows"][0]["blocking"], 63.0);
  expect_refused([] { split_tables({.cores = 1}); }, "expected: 2 to 4096");
  expect_refused([] { split_tables({.cores = 8, .from = 4, .to = 8}); }, "--to below the cores");
  expect_refused([] { split_tables({.cores = 8, .from = 5, .to = 4}); }, "--from at most --to");
}

TEST(SplitTables, AreDrawn) {
  const std::string figure = split_figure(split_tables({}));
  EXPECT_EQ(figure.rfind("<svg", 0), 0U);
  std::size_t curves = 0;
  for (std::size_t at = figure.find("<polyline"); at != std::string::npos; at = figure.find("<polyline", at + 1)) {
    ++curves;
  }
  EXPECT_EQ(curves, 5U) << "S = 0 to 3, and blocking";
  EXPECT_EQ(figure.find("nan"), std::string::npos);
  EXPECT_EQ(split_figure(split_tables({.cores = 2})).find("nan"), std::string::npos) << "one rank";
}

TEST(PlacementTable, TellsWhereNeighboursShareACore) {
  const json table = placement_table(64, 62);
  EXPECT_EQ(table["rows"].size(), 62U);
  EXPECT_EQ(table["neighbours_on_one_core"]["bind"], 0);
  EXPECT_EQ(table["neighbours_on_one_core"]["odd-even"], 0);
  EXPECT_EQ(table["neighbours_on_one_core"]["numa"], 60);
  expect_refused([] { placement_table(4, 5); }, "5 ranks on 4 cores");
  expect_refused([] { placement_table(4, 0); }, "expected: at least 1 rank");
}

}  // namespace
}  // namespace canele::model
