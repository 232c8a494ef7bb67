// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting where ranks share the cores. A yield gives the other rank its turn, and its messages are found with little
// work. Messages that no thread waits for stay where they are. The last rank on its unit polls for longer.
//
// One thread, once both ranks exist; the other rank runs inside the waiting rank's yields. The machine has one core.
#include <atomic>
#include <functional>
#include <vector>

#include "tests/unit/ltask/real_platform.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// The real platform, but for one core and for what happens in a yield. Its clock advances when it is looked at, so
/// that a slow machine takes no look more.
class OneCore final : public RealPlatform {
 public:
  std::function<void()> others_turn = [] {};
  std::atomic<int> looks_at_clock{0};  ///< ranks start in threads of their own

  std::uint64_t now_ns() noexcept override {
    constexpr std::uint64_t between_looks_ns = 100;
    return between_looks_ns * static_cast<std::uint64_t>(++looks_at_clock);
  }
  void relax() noexcept override {}
  void yield() noexcept override { others_turn(); }
  unsigned processors() noexcept override { return 1; }
  int share_of_units(unsigned share) noexcept override { return static_cast<int>(share % 2); }  // once there were two
};

TEST(WaitInTurns, FindsWhatCameInAYieldWithoutALookAtTheClock) {
  constexpr int waits = 200;
  OneCore platform;
  JobOptions options;
  options.settings = {"CANELE_WORKER=none"};
  options.platform = &platform;
  LocalJob job(options);
  const auto sessions = job.open("s");
  int sent = 0;
  canele_request_t sends[waits] = {};
  int looks = 0;
  for (; sent < waits; ++sent) {
    int got = -1;
    canele_request_t receive{};
    ASSERT_EQ(canele_irecv(sessions[0], 1, 1, CANELE_TAG_EXACT, &got, sizeof got, &receive), CANELE_OK);
    const int before = platform.looks_at_clock;
    int turns = 0;
    if (sent == 0) {  // connects them
      ASSERT_EQ(canele_isend(sessions[1], 0, 1, &sent, sizeof sent, &sends[sent]), CANELE_OK);
      ASSERT_TRUE(job.finish(receive));
    }
    platform.others_turn = [&] {
      if (++turns == 2) {
        ASSERT_EQ(canele_isend(sessions[1], 0, 1, &sent, sizeof sent, &sends[sent]), CANELE_OK);
      }
      job.engine(1).step();
    };
    ASSERT_EQ(canele_wait(&receive, nullptr), CANELE_OK);
    platform.others_turn = [] {};
    ASSERT_TRUE(job.finish(sends[sent]));
    EXPECT_EQ(got, sent);
    if (sent >= waits / 2) looks += platform.looks_at_clock - before;
  }
  EXPECT_LT(looks, waits / 2) << "a wait that makes ready for more looks at it at each yield";
}

/// Four ranks. The others act in yields of rank 0.
class AmongRanks : public testing::Test {
 protected:
  static constexpr std::uint64_t tag = 1, other_tag = 2;

  static JobOptions options(OneCore& platform) {
    JobOptions options;
    options.size = 4;
    options.settings = {"CANELE_WORKER=none"};
    options.platform = &platform;
    return options;
  }
  AmongRanks() {
    for (int from = 1; from < job_.size(); ++from) {  // connects them
      canele_request_t receive{}, sent{};
      post(from, tag, receive);
      EXPECT_EQ(canele_isend(sessions_[static_cast<std::size_t>(from)], 0, tag, &from, sizeof from, &sent), CANELE_OK);
      EXPECT_TRUE(job_.finish(receive) && job_.finish(sent));
    }
    job_.until([&] { return job_.step_all() == 0; });
  }
  void post(int from, std::uint64_t with, canele_request_t& receive) {
    EXPECT_EQ(canele_irecv(sessions_[0], from, with, CANELE_TAG_EXACT, &got_, sizeof got_, &receive), CANELE_OK);
  }
  void send(int from, std::uint64_t with) {
    canele_request_t request{};
    EXPECT_EQ(canele_isend(sessions_[static_cast<std::size_t>(from)], 0, with, &from, sizeof from, &request),
              CANELE_OK);
    EXPECT_TRUE(comm::request_of(&request).finalized()) << "it leaves at once";
  }
  /// Rank 0 waits for a message with the tag; then[i] happens in yield i. Returns the number of yields.
  int wait(int from, std::vector<std::function<void()>> then) {
    canele_request_t receive{};
    post(from, tag, receive);
    return wait_for(receive, std::move(then));
  }
  int wait_for(canele_request_t& receive, std::vector<std::function<void()>> then) {
    std::size_t yields = 0;
    platform_.others_turn = [&] {
      if (yields++ < then.size()) then[yields - 1]();
    };
    EXPECT_EQ(canele_wait(&receive, nullptr), CANELE_OK);
    platform_.others_turn = [] {};
    return static_cast<int>(yields);
  }
  std::uint64_t kept() { return job_.engine(0).counters.read(comm::Counter::unexpected_messages); }
  std::uint64_t looks() { return job_.engine(0).driver_set.polled.front()->driver->polls(); }
  /// Returns the polls before the first yield of a wait for a message of `from`, which comes in that yield.
  std::uint64_t looks_before_a_yield(int from) {
    const std::uint64_t before = looks();
    std::uint64_t at_yield = 0;
    wait(from, {[&] {
           at_yield = looks();
           send(from, tag);
         }});
    return at_yield - before;
  }

  OneCore platform_;
  LocalJob job_{options(platform_)};
  std::vector<canele_session_t*> sessions_ = job_.open("s");
  int got_ = -1;
};

TEST_F(AmongRanks, AMessageThatNobodyWaitsForStaysWhereItIs) {
  const std::uint64_t before = kept();
  const int yields = wait(1, {[&] {
                            send(2, other_tag);
                            send(3, tag);
                            send(1, tag);
                            send(1, tag);
                          }});
  EXPECT_EQ(yields, 1);
  EXPECT_EQ(got_, 1);
  EXPECT_EQ(kept(), before) << "it would be copied twice";
  for (const int from : {3, 1}) {
    EXPECT_EQ(wait(from, {}), 0);
    EXPECT_EQ(got_, from);
  }
  canele_request_t receive{};
  post(2, other_tag, receive);
  EXPECT_EQ(wait_for(receive, {}), 0);
  EXPECT_EQ(got_, 2);
}

TEST_F(AmongRanks, ButNotBeforeWhatIsWaitedFor) {
  EXPECT_EQ(wait(1, {[&] {
                   send(1, other_tag);
                   send(1, tag);
                 }}),
            1)
      << "the first must be taken for that";
  EXPECT_EQ(got_, 1);
}

TEST_F(AmongRanks, NorWhereThatMayComeFromAnybody) {
  EXPECT_EQ(wait(CANELE_ANY_SOURCE, {[&] {
                   send(2, other_tag);
                   send(2, tag);
                 }}),
            1);
  EXPECT_EQ(got_, 2);
}

TEST_F(AmongRanks, NorForLong) {
  const std::uint64_t before = kept();
  wait(1, {[&] { send(2, other_tag); }, [] {}, [] {}, [&] { send(1, tag); }});
  EXPECT_EQ(kept(), before + 1) << "a thread may wait for what lies behind it";
}

TEST_F(AmongRanks, WhoIsTheLastOnItsUnitLooksForLonger) {
  constexpr std::uint64_t longer = 32;
  comm::Engine& engine = job_.engine(0);
  engine.progress.core_siblings.find(platform_, 0, 4);  // 2
  ASSERT_TRUE(engine.progress.core_siblings.any());
  EXPECT_LT(looks_before_a_yield(2), longer) << "it needs this unit";
  EXPECT_GT(looks_before_a_yield(1), longer) << "it has sent, and has its own unit";
  EXPECT_LT(looks_before_a_yield(1), longer) << "2 has not sent since then";
  canele_request_t receive{};
  send(2, other_tag);
  post(2, other_tag, receive);
  ASSERT_TRUE(job_.finish(receive));
  canele_request_t expected{};
  post(2, tag, expected);
  EXPECT_LT(looks_before_a_yield(3), longer) << "2 is to send that, and needs this unit";
  send(2, tag);
  ASSERT_TRUE(job_.finish(expected));
  EXPECT_GT(looks_before_a_yield(3), longer);
}

TEST_F(AmongRanks, WhereTheyAreManyNobodyAsksWhoIsThere) {
  comm::CoreSiblings siblings;
  siblings.find(platform_, 0, 32);
  EXPECT_TRUE(siblings.any());
  siblings.find(platform_, 0, 34);
  EXPECT_FALSE(siblings.any());
}

}  // namespace
}  // namespace canele::test
