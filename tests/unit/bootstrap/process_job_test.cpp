// SPDX-License-Identifier: BSD-3-Clause
//
// Several engines of a process at one connection: which keys, answers and deaths belong to which engine; when the job
// is left.
//
// The threads are the platform's. The connection is a script; tests/process/strangers tests the real ones.
#include "comm/bootstrap/process_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <thread>
#include <utility>

#include "tests/unit/ltask/real_platform.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t long_enough = 30'000'000'000;

/// Records what is done to the connection, in order, and decides what it does.
struct Script {
  std::vector<std::string> done;
  std::map<std::string, Blob> blobs;
  std::vector<std::pair<std::string, Bootstrap::Deliver>> open;
  std::function<void(int)> died;
  std::set<int> dead;
  bool fence_ends_well = true, resumes = true;
};

class Scripted final : public ProcessBootstrap {
 public:
  explicit Scripted(Script& script) : script_(script) { script_.done.emplace_back("connect"); }
  std::string_view name() const override { return "script"; }
  int rank() const override { return 1; }
  int size() const override { return 3; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::uint64_t job() const override { return 7; }
  const std::string& host() const override { return host_; }
  bool put(std::string_view key, const Blob& blob, std::string*) override {
    script_.blobs[std::string(key)] = blob;
    return true;
  }
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override { return fence(timeout_ns, why); }
  bool fence(std::uint64_t, std::string* why) override {
    script_.done.emplace_back("fence");
    if (!script_.fence_ends_well) *why = "a rank is missing";
    return script_.fence_ends_well;
  }
  void get(int, std::string_view key, std::uint64_t, Deliver deliver) override {
    script_.open.emplace_back(key, std::move(deliver));
  }
  void on_failure(std::function<void(int)> died) override { script_.died = std::move(died); }
  bool has_died(int rank) const override { return script_.dead.contains(rank); }
  void abort(int, std::string_view) override { script_.done.emplace_back("abort"); }
  void finalize() override { script_.done.emplace_back("finalize"); }
  void rest() override { script_.done.emplace_back("rest"); }
  bool resume(std::uint64_t, std::string* why) override {
    script_.done.emplace_back("resume");
    if (!script_.resumes) *why = "once is enough";
    return script_.resumes;
  }

 private:
  Script& script_;
  std::string host_ = "here";
};

/// The real platform, which can pretend to be in another process.
struct ForkedPlatform final : test::RealPlatform {
  long process() noexcept override { return pid; }
  long pid = posix_platform().process();
};

struct Engines : testing::Test {
  /// Joins; nullptr: refused. Members that met all others are engines.
  std::unique_ptr<Bootstrap> join() {
    const auto connect = [this](std::string*) { return std::make_unique<Scripted>(script); };
    return job.join(platform, long_enough, connect, &why);
  }
  std::unique_ptr<Bootstrap> make() {
    std::unique_ptr<Bootstrap> made = join();
    EXPECT_TRUE(made != nullptr && made->commit_and_fence(long_enough, &why)) << why;
    return made;
  }
  Script script;
  ForkedPlatform platform;
  ProcessJob job;
  std::string why;
};

TEST_F(Engines, HaveKeysOfTheirOwn) {
  const auto first = join();
  ASSERT_TRUE(first->put("address", {std::byte{1}}, &why));
  ASSERT_TRUE(first->commit_and_fence(long_enough, &why));
  const auto second = join();
  ASSERT_TRUE(second->put("address", {std::byte{2}}, &why));
  ASSERT_TRUE(second->commit_and_fence(long_enough, &why));
  ASSERT_EQ(script.blobs.size(), 2u);
  EXPECT_EQ(script.blobs.at("address-of-1"), Blob{std::byte{1}});
  EXPECT_EQ(script.blobs.at("address-of-2"), Blob{std::byte{2}});
  int answers = 0;
  second->get(0, "address", long_enough, [&](bool ok, const Blob&, const std::string&) { answers += ok ? 1 : 100; });
  ASSERT_EQ(script.open.size(), 1u);
  EXPECT_EQ(script.open[0].first, "address-of-2");
  script.open[0].second(true, {}, "");
  EXPECT_EQ(answers, 1);
  EXPECT_NE(first->job(), second->job()) << "drivers must not take one for the other";
}

TEST_F(Engines, LeaveAfterTheLast) {
  auto first = make(), second = make();
  first->finalize();
  first = make();
  second.reset();
  EXPECT_EQ(script.done, (std::vector<std::string>{"connect", "fence", "fence", "fence"}));
  first.reset();
  EXPECT_EQ(script.done.back(), "rest");
  const auto third = make();
  EXPECT_EQ(script.done.back(), "fence");
  EXPECT_EQ(script.done.end()[-2], "resume");
  third->finalize();
  job.process_ends();
  EXPECT_EQ(script.done.back(), "finalize");
}

TEST_F(Engines, AreRejectedInTheLaunchersWords) {
  make()->finalize();
  script.resumes = false;
  EXPECT_EQ(join(), nullptr);
  EXPECT_EQ(why, "once is enough");
  EXPECT_EQ(join(), nullptr) << "and again";
}

TEST_F(Engines, KeepTheProcessInItsJobWhenItExits) {
  auto first = make();
  job.process_ends();
  EXPECT_EQ(script.done.back(), "fence") << "the launcher is to see an end in the middle of a job";
  first.reset();  // by a destructor of the program, which runs later
  EXPECT_EQ(script.done.back(), "finalize");
}

TEST_F(Engines, ThatNotAllRanksHaveGiveTheirNumberBack) {
  script.fence_ends_well = false;
  auto first = join();
  EXPECT_FALSE(first->commit_and_fence(long_enough, &why));
  EXPECT_EQ(why, "a rank is missing");
  first.reset();
  join().reset();  // one that has not met the others
  script.fence_ends_well = true;
  first = make();
  ASSERT_TRUE(first->put("address", {}, &why));
  EXPECT_TRUE(script.blobs.contains("address-of-1"));
  script.fence_ends_well = false;
  EXPECT_FALSE(join()->commit_and_fence(long_enough, &why));
  EXPECT_EQ(why,
            "a rank is missing; this is engine 2 of its process, and all ranks must create their engines in the "
            "same order");
}

TEST_F(Engines, GetEachAnswerOnce) {
  auto first = make();
  std::vector<std::string> told;
  first->get(0, "address", long_enough, [&](bool, const Blob&, const std::string& reason) { told.push_back(reason); });
  first->get(2, "address", long_enough, [&](bool, const Blob&, const std::string& reason) { told.push_back(reason); });
  script.open[0].second(false, {}, "rank 0 has not published 'address-of-1' in the time given");
  first->finalize();
  EXPECT_EQ(told, (std::vector<std::string>{"rank 0 has not published 'address' in the time given",
                                            "this rank is leaving the job"}));
  script.open[1].second(true, {}, "too late");
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(Engines, HearOfEachDeathOnce) {
  const auto first = make();
  std::vector<int> heard, heard_late;
  first->on_failure([&](int rank) { heard.push_back(rank); });
  script.dead = {2};
  script.died(2);
  const auto second = make();
  second->on_failure([&](int rank) { heard_late.push_back(rank); });
  script.died(2);
  script.died(0);
  EXPECT_EQ(heard, (std::vector<int>{2, 0}));
  EXPECT_EQ(heard_late, (std::vector<int>{2, 0}));
  first->finalize();
  script.died(1);
  EXPECT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard_late.size(), 3u);
}

/// finalize() frees data that callbacks use.
TEST_F(Engines, DoNotEndInsideACallback) {
  const auto first = make();
  std::atomic<int> stage{0};
  first->on_failure([&](int) {
    stage = 1;
    stage.notify_all();
    stage.wait(1);
    stage = 3;
  });
  std::thread launcher([&] { script.died(2); });
  stage.wait(0);
  std::thread release([&] {
    stage = 2;
    stage.notify_all();
  });
  first->finalize();
  EXPECT_EQ(stage, 3);
  launcher.join();
  release.join();
}

TEST_F(Engines, AreCreatedInTurn) {
  auto first = join();
  std::unique_ptr<Bootstrap> second;
  std::thread other([&] {
    second = make();
    script.done.emplace_back("second");
  });
  script.done.emplace_back("first meets");  // the other thread cannot have finished the join
  EXPECT_TRUE(first->commit_and_fence(long_enough, &why));
  other.join();
  EXPECT_EQ(script.done, (std::vector<std::string>{"connect", "first meets", "fence", "fence", "second"}));
}

TEST_F(Engines, OfAChildAreRejected) {
  const auto first = make();
  ++platform.pid;
  EXPECT_EQ(join(), nullptr);
  EXPECT_NE(why.find("this process is the child of rank 1"), std::string::npos) << why;
}

}  // namespace
}  // namespace canele::comm
