// SPDX-License-Identifier: BSD-3-Clause
//
// How often an on-demand thread checks: seldom while other threads poll, and yet soon after they have stopped, however
// long they have polled.
//
// The test's thread, and the on-demand thread's on virtual time, in turn. The figures are those of the present code.
// Naps four times as long after polls by others made StarPU's Cholesky of four processes on two cores three times
// slower: measure that before changing them.
#include <gtest/gtest.h>

#include <thread>

#include "ltask/on_demand_progress.hpp"
#include "tests/unit/ltask/virtual_time.hpp"

namespace canele::ltask {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// Other threads poll all the time, until they stop. Work is pending: one turn does it.
class Left final : public ProgressSource {
 public:
  explicit Left(test::VirtualTime& clock) : clock_(clock) {}
  std::uint64_t last_poll_ns = ~std::uint64_t{0};
  bool urgent = true;
  std::atomic<int> checks{0};
  std::atomic<std::uint64_t> asked_ns{0}, helped_ns{0};  ///< when first asked, and when first run

  Coverage check_coverage() override {
    ++checks;
    const bool polled = seen_ns_ < last_poll_ns || asked_ns != 0;
    seen_ns_ = clock_.now_ns();
    return polled ? Coverage::recent : Coverage::needed;
  }
  bool unfinished() override {
    if (asked_ns == 0) asked_ns = clock_.now_ns();
    return helped_ns == 0;
  }
  int help() override {
    if (helped_ns != 0) return -1;
    helped_ns = clock_.now_ns();
    return 1;
  }
  bool others_progress() override { return false; }
  bool is_urgent() const override { return urgent; }
  int step() override { return 0; }
  void sleep(std::uint64_t, Called) override { ADD_FAILURE() << "one turn does it"; }
  void wake() override {}

 private:
  test::VirtualTime& clock_;
  std::uint64_t seen_ns_ = 0;  ///< time of the last check
};

struct Paced {
  OnDemandProgress::Kind kind;
  OnDemandProgress::Pace pace;
  std::uint64_t longest_ns;  ///< ns, as measured
  const char* name;
};

class OnDemandPace : public testing::TestWithParam<Paced> {
 protected:
  /// Other threads poll for so long, and then no thread polls.
  void expect_help_after(std::uint64_t polled_ns) {
    const Paced& one = GetParam();
    test::VirtualTime clock;
    Left left(clock);
    left.last_poll_ns = clock.now_ns() + polled_ns;
    OnDemandProgress on_demand(clock, left, Idle::Budget{0, 0});
    ASSERT_TRUE(on_demand.start(one.kind, one.pace));
    clock.run(polled_ns);
    EXPECT_EQ(left.asked_ns, 0u) << "others still poll";
    clock.run(2 * one.longest_ns);
    ASSERT_NE(left.asked_ns, 0u) << "no thread has polled for " << 2 * one.longest_ns << " ns, after " << polled_ns;
    while (left.helped_ns == 0) std::this_thread::yield();  // on idle cores the on-demand thread runs in another thread
    if (one.kind == OnDemandProgress::Kind::on_demand) {
      EXPECT_EQ(left.helped_ns, left.asked_ns);
    }
  }
  /// Returns how often the on-demand thread checks in a second while other threads poll.
  int checks_in_a_second(bool urgent) {
    test::VirtualTime clock;
    Left left(clock);
    left.urgent = urgent;
    OnDemandProgress on_demand(clock, left, Idle::Budget{0, 0});
    EXPECT_TRUE(on_demand.start(GetParam().kind, GetParam().pace));
    clock.run(second);
    return left.checks;
  }
};

TEST_P(OnDemandPace, HelpsWithinTwoOfTheLongestNapsHoweverLongOthersHavePolled) {
  constexpr std::uint64_t parts = 8;  // of a nap, at each of which polling may stop
  for (const std::uint64_t naps : {0, 2, 30, 1000, 20'000}) {
    for (std::uint64_t i = 0; i < parts; ++i) expect_help_after((naps * parts + i) * GetParam().longest_ns / parts);
  }
}

TEST_P(OnDemandPace, ChecksAsOftenAsItWasMeasuredWhileOthersPoll) {
  constexpr int short_ones = 10;  // at first
  const int long_ones = static_cast<int>(second / GetParam().longest_ns);
  for (const bool urgent : {true, false}) {
    const int checks = checks_in_a_second(urgent);
    EXPECT_GE(checks, long_ones - 1) << urgent;
    EXPECT_LE(checks, long_ones + short_ones) << urgent;
  }
}

/// Two ranks of a host, the second one started later, so that naps of the same lengths would end at other times.
TEST(OnDemandPaces, RanksOfAHostCheckTogether) {
  constexpr std::uint64_t longest = 6'400'000, later = 2'500'000, for_short_ones = 100'000'000;
  for (const std::uint64_t begins : {std::uint64_t{0}, later}) {
    test::VirtualTime clock;
    clock.pass(begins);
    Left left(clock);
    OnDemandProgress on_demand(clock, left, Idle::Budget{0, 0});
    ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::on_demand, {50'000, longest, 2}));
    clock.run(for_short_ones - begins);
    for (int i = 0; i < 3; ++i) {
      clock.run(longest - clock.now_ns() % longest - 1);
      const int before = left.checks;
      clock.run(1);
      EXPECT_EQ(left.checks, before + 1) << "no check at a multiple of its longest nap, begun at " << begins;
    }
  }
}

constexpr OnDemandProgress::Pace beside_worker = {25'000, 50'000, 40};
INSTANTIATE_TEST_SUITE_P(
    Kinds, OnDemandPace,
    testing::Values(Paced{OnDemandProgress::Kind::on_demand, {}, 1'600'000, "OnDemand"},
                    Paced{OnDemandProgress::Kind::on_demand, {50'000, 6'400'000, 2}, 6'400'000, "Oversubscribed"},
                    Paced{OnDemandProgress::Kind::idle_cores, {}, 1'600'000, "IdleCores"},
                    Paced{OnDemandProgress::Kind::idle_cores, beside_worker, 50'000, "BesideWorker"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace canele::ltask
