// SPDX-License-Identifier: BSD-3-Clause
//
// How soon an engine's on-demand thread helps when the program, which has polled for long, computes. With the pace that
// the engine gives the on-demand thread, where ranks share processing units and where they do not.
//
// The test's thread, and an on-demand thread's on virtual time, in turn. The figures are those of the present code; see
// tests/unit/ltask/on_demand_pace_test.cpp.
#include <vector>

#include "tests/unit/ltask/virtual_time.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t us = 1'000, ms = 1'000'000;

/// Rank 0 has an on-demand thread, on the test's clock; rank 1 makes its own progress.
class EnginesPace : public testing::TestWithParam<bool> {
 protected:
  EnginesPace() : job_(options()), sessions_(job_.open("pace")) { exchange(); }

  JobOptions options() {
    JobOptions options;
    options.settings = {"CANELE_WORKER=none"};
    options.platform = &clock_;
    return options;
  }
  /// Connects the ranks.
  void exchange() {
    int in = 0;
    const int out = 1;
    canele_request_t send{}, receive{};
    ASSERT_EQ(canele_irecv(sessions_[0], 1, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
    ASSERT_EQ(canele_isend(sessions_[1], 0, 1, &out, sizeof out, &send), CANELE_OK);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
  }
  void start_on_demand_progress() {
    job_.engine(0).oversubscribed = GetParam();
    ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_AUTO), CANELE_OK);
    clock_.run(1);
  }
  /// Rank 0 polls for so long, and more often than its on-demand thread checks.
  void poll(std::uint64_t ns) {
    constexpr std::uint64_t pause = 20 * us;
    for (std::uint64_t t = 0; t < ns; t += pause) {
      canele_progress(job_.handle(0));
      clock_.run(pause);
    }
    canele_progress(job_.handle(0));
  }
  VirtualTime clock_;
  LocalJob job_;
  std::vector<canele_session_t*> sessions_;
  const std::uint64_t longest_ns_ = (GetParam() ? 4 : 1) * 1600 * us;
};

TEST_P(EnginesPace, HelpsSoonHoweverLongTheProgramHasPolled) {
  start_on_demand_progress();
  constexpr std::uint64_t parts = 5;  // of a nap, at each of which polling may stop
  for (std::uint64_t i = 0; i < 2 * parts; ++i) {
    int in = 0;
    const int out = 2;
    canele_request_t send{}, receive{};
    ASSERT_EQ(canele_irecv(sessions_[0], 1, 2, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
    poll(10 * ms + i * i * longest_ns_ / parts);
    ASSERT_EQ(canele_isend(sessions_[1], 0, 2, &out, sizeof out, &send), CANELE_OK);
    while (job_.engine(1).step() > 0) continue;
    EXPECT_FALSE(comm::request_of(&receive).finalized()) << "rank 0 computes";
    clock_.run(2 * longest_ns_);
    EXPECT_TRUE(comm::request_of(&receive).finalized())
        << "its on-demand thread has not checked for " << 2 * longest_ns_ << " ns";
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
    EXPECT_EQ(in, out);
  }
}

TEST_P(EnginesPace, ChecksAsOftenAsItWasMeasuredWhileTheProgramPolls) {
  start_on_demand_progress();
  const int before = clock_.naps();
  constexpr int long_ones = 50, short_ones = 10;
  poll(long_ones * longest_ns_);
  EXPECT_GE(clock_.naps() - before, long_ones - 1);
  EXPECT_LE(clock_.naps() - before, long_ones + short_ones);
}

TEST_P(EnginesPace, BeginsWithANapAsShortAsItWasMeasured) {
  start_on_demand_progress();
  clock_.run(8 * 50 * us);  // over shm nothing is urgent
  EXPECT_EQ(clock_.naps(), 2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EnginesPace, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "ShareUnits" : "HaveTheirUnits"); });

}  // namespace
}  // namespace canele::test
