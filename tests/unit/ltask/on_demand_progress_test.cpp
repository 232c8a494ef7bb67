// SPDX-License-Identifier: BSD-3-Clause
//
// The on-demand thread by itself: it helps when it is needed, and only then; it parks, is notified, sleeps, and stops.
#include "ltask/on_demand_progress.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/unit/ltask/virtual_time.hpp"

namespace canele::ltask {
namespace {

using Coverage = ProgressSource::Coverage;
using Because = OnDemandProgress::Because;

/// A progress source that answers as the test wants, and counts.
class Patient final : public ProgressSource {
 public:
  std::atomic<Coverage> coverage{Coverage::guaranteed};
  std::atomic<bool> works{true}, others{false};
  std::atomic<int> checks{0}, questions{0}, turns{0}, steps{0}, sleeps{0};
  std::atomic<int> program{-1}, worker{-1};                   ///< where they run
  std::atomic<bool> checks_there{false}, helps_there{false};  ///< the thread may do so anywhere
  Sleeper sleeper{posix_platform()};
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<bool> hears{false};  ///< the bell rings when an event comes
  ~Patient() { close(bell); }

  int descriptor() const override { return bell; }
  bool heeds_arrivals() override { return hears.load(); }
  Coverage check_coverage() override {
    checks_there = may_run_on(taken());
    ++checks;
    return coverage.load();
  }
  bool unfinished() override {
    ++questions;
    return works.load();
  }
  int help() override {
    if (coverage.load() != Coverage::needed || !works.load() || others.load()) return -1;
    helps_there = may_run_on(taken());
    ++turns;
    return 0;
  }
  int program_unit() const override { return program.load(); }
  int worker_unit() const override { return worker.load(); }
  bool others_progress() override { return others.load(); }
  int step() override { return ++steps; }
  void sleep(std::uint64_t timeout_ns, Called called) override {
    ASSERT_TRUE(sleeper.try_claim());
    ++sleeps;
    sleeper.sleep(timeout_ns, called);
    sleeper.release();
  }
  void wake() override { sleeper.wake(); }

 private:
  int taken() const { return std::max(program.load(), worker.load()); }
  static bool may_run_on(int unit) {
    cpu_set_t set;
    return unit >= 0 && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(unit, &set);
  }
};

/// Returns whether there is another core to go to.
bool has_two_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

template <typename Condition>
void until(Condition condition) {
  while (!condition()) std::this_thread::yield();  // if the condition never holds, the test's time limit ends this
}

class OnDemandProgressTest : public testing::TestWithParam<OnDemandProgress::Kind> {
 protected:
  static constexpr OnDemandProgress::Pace pace = {10'000, 40'000, 2};
  Patient patient;
  OnDemandProgress on_demand{posix_platform(), patient, Idle::Budget{0, 0}};
};

TEST_P(OnDemandProgressTest, HelpsWhenNeededAndSleepsWhileItDoes) {
  ASSERT_TRUE(on_demand.start(GetParam(), pace));
  until([&] { return patient.checks > 3; });
  EXPECT_EQ(patient.turns, 0);
  patient.coverage = Coverage::needed;
  on_demand.notify();
  until([&] { return on_demand.asleep() && patient.sleeps > 0; });
  EXPECT_GT(patient.turns, 0);
  patient.coverage = Coverage::recent;
  const int checks = patient.checks;
  patient.wake();
  until([&] { return patient.checks > checks + 3; });
  EXPECT_FALSE(on_demand.asleep());
}

TEST_P(OnDemandProgressTest, StopsWhateverItDoes) {
  for (int round = 0; round < 20; ++round) {
    patient.coverage = round % 3 == 0 ? Coverage::needed : round % 3 == 1 ? Coverage::guaranteed : Coverage::recent;
    ASSERT_TRUE(on_demand.start(GetParam(), pace));
    const int checks = patient.checks;
    if (round % 2 == 0) until([&] { return patient.checks > checks || on_demand.asleep(); });
    if (round % 4 == 0) until([&] { return patient.coverage != Coverage::needed || patient.sleeps > 0; });
    on_demand.stop();
    EXPECT_EQ(on_demand.kind(), OnDemandProgress::Kind::off);
    EXPECT_FALSE(on_demand.asleep());
    EXPECT_FALSE(on_demand.parked());
  }
}

TEST_P(OnDemandProgressTest, StaysAwakeIfOthersComeBackAsItGoesToSleep) {
  patient.coverage = Coverage::needed;
  patient.others = true;  // help() ends at once, and sleep() would, too
  ASSERT_TRUE(on_demand.start(GetParam(), pace));
  until([&] { return patient.checks > 5; });
  EXPECT_EQ(patient.turns, 0);
  EXPECT_EQ(patient.sleeps, 0);
}

TEST_P(OnDemandProgressTest, AsksForWorkAndDoesNotHelpWithoutAny) {
  patient.works = false;
  patient.coverage = Coverage::needed;
  ASSERT_TRUE(on_demand.start(GetParam(), pace));
  until([&] { return patient.questions > 3; });
  EXPECT_EQ(patient.turns, 0);
  patient.works = true;
  on_demand.notify();
  until([&] { return patient.turns > 0; });
}

TEST_P(OnDemandProgressTest, AsksWhoPostsOneAfterTheOtherToMakeATurn) {
  patient.coverage = Coverage::poster_polls;
  ASSERT_TRUE(on_demand.start(GetParam(), pace));
  for (int i = 0; i < 3; ++i) {
    until([&] { return on_demand.wants_notify(); });
    EXPECT_FALSE(on_demand.parked());
    EXPECT_TRUE(on_demand.notify());
  }
  EXPECT_EQ(patient.questions, 0);
  EXPECT_EQ(patient.turns, 0);
  patient.coverage = Coverage::needed;  // the program has left the library to compute
  until([&] { return patient.turns > 0; });
}

INSTANTIATE_TEST_SUITE_P(Kinds, OnDemandProgressTest,
                         testing::Values(OnDemandProgress::Kind::on_demand, OnDemandProgress::Kind::idle_cores),
                         [](const auto& one) {
                           return std::string(one.param == OnDemandProgress::Kind::on_demand ? "OnDemand"
                                                                                             : "IdleCores");
                         });

/// The real platform, but a nap of less than about an hour is over at once. Its clock began at a full hour, because the
/// longest naps end at one.
class LongNaps final : public test::RealPlatform {
 public:
  static constexpr std::uint64_t an_hour = 3'600'000'000'000;
  static bool is_long(std::uint64_t ns) { return ns > an_hour / 10 * 9; }
  std::uint64_t now_ns() noexcept override { return RealPlatform::now_ns() - began_ns_ + an_hour; }
  std::atomic<std::uint64_t> last_ns{0};  ///< the last setting of the alarm
  std::atomic<int> ended{0};              ///< naps, also those that an event ended
  std::unique_ptr<Alarm> make_alarm() override { return std::make_unique<Nap>(RealPlatform::make_alarm(), *this); }

 private:
  class Nap final : public Alarm {
   public:
    Nap(std::unique_ptr<Alarm> real, LongNaps& all) : real_(std::move(real)), all_(all) {}
    void set(std::uint64_t ns) noexcept override {
      const std::lock_guard guard(mutex_);  // two threads may set it: the last one counts in both
      all_.last_ns = ns;
      real_->set(is_long(ns) ? ns : 0);
    }
    void wait() noexcept override {
      real_->wait();
      ++all_.ended;
    }
    bool watch(int descriptor) noexcept override { return real_->watch(descriptor); }
    bool heed() noexcept override { return real_->heed(); }
    bool ignore() noexcept override { return real_->ignore(); }
    bool has_heard() const noexcept override { return real_->has_heard(); }

   private:
    std::mutex mutex_;
    std::unique_ptr<Alarm> real_;
    LongNaps& all_;
  };

  const std::uint64_t began_ns_ = RealPlatform::now_ns();
};

/// An on-demand thread that checks but is never needed is idle for longer and longer: here for an hour, after a moment.
class OnDemandExpedited : public testing::Test {
 protected:
  static constexpr std::uint64_t an_hour = LongNaps::an_hour;
  static constexpr OnDemandProgress::Pace pace = {10'000, an_hour, 1000};
  void start() {
    patient.coverage = Coverage::recent;
    ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::on_demand, pace));
  }
  void await_long_idle_time() {
    until([&] { return LongNaps::is_long(platform.last_ns) && on_demand.is_idle(); });
  }
  /// Returns whether expediting the on-demand thread has been in vain too often.
  bool spares_it() {
    await_long_idle_time();
    on_demand.expedite(Because::there_is_work);
    return !on_demand.expedited() && on_demand.was_called();  // otherwise it may have checked by now
  }
  /// Expedites the on-demand thread until it is no longer trusted: the caller waits at once each time, so expediting is
  /// of no use.
  bool lose_trust() {
    for (int times = 0; times < 1000; ++times) {
      const bool spared = spares_it();
      on_demand.cancel_expedite();
      if (spared) return true;
    }
    return false;
  }
  LongNaps platform;
  Patient patient;
  OnDemandProgress on_demand{platform, patient, Idle::Budget{0, 0}};
};

TEST_F(OnDemandExpedited, ChecksSoonAfterALongIdleTime) {
  constexpr std::uint64_t soon = pace.first_ns / 2;
  test::VirtualTime clock;
  OnDemandProgress late(clock, patient, Idle::Budget{0, 0});
  patient.coverage = Coverage::recent;
  ASSERT_TRUE(late.start(OnDemandProgress::Kind::on_demand, pace));
  for (int i = 0; i < 10; ++i) {
    clock.run(an_hour);
    ASSERT_TRUE(late.is_idle());
    const int checks = patient.checks + 1;  // one is at the call itself
    late.expedite(Because::there_is_work);
    EXPECT_FALSE(late.is_idle());
    EXPECT_TRUE(late.expedited());
    clock.run(soon - 1);
    EXPECT_EQ(patient.checks, checks);
    clock.run(1);
    EXPECT_EQ(patient.checks, checks + 1);
    EXPECT_FALSE(late.expedited());
  }
  clock.run(an_hour);
  patient.coverage = Coverage::needed;
  late.expedite(Because::there_is_work);
  clock.pass(an_hour / 4);
  until([&] { return patient.turns > 0; });
}

TEST_F(OnDemandExpedited, DoesNotCheckIfAThreadComesBack) {
  start();
  await_long_idle_time();
  on_demand.expedite(Because::there_is_work);
  on_demand.cancel_expedite();
  EXPECT_FALSE(on_demand.expedited());
  on_demand.cancel_expedite();  // nothing to take back
  on_demand.stop();             // from a nap of an hour, if need be
}

TEST_F(OnDemandExpedited, ChecksWhenSomethingComes) {
  patient.hears = true;
  start();
  await_long_idle_time();
  const int checks = patient.checks + 1;  // one is at the call itself
  on_demand.expedite(Because::something_will_come);
  EXPECT_TRUE(LongNaps::is_long(platform.last_ns)) << "a timer would wake it";
  for (int k = 0; k < 50; ++k) std::this_thread::yield();
  EXPECT_TRUE(on_demand.expedited());
  EXPECT_EQ(patient.checks, checks);
  eventfd_write(patient.bell, 1);
  until([&] { return patient.checks > checks; });
}

TEST_F(OnDemandExpedited, DoesNotWaitForThatIfThereIsWork) {
  patient.hears = true;
  start();
  await_long_idle_time();
  on_demand.expedite(Because::there_is_work);
  until([&] { return !on_demand.expedited(); });
}

TEST_F(OnDemandExpedited, DoesNotListenToWhatComesForWhoWaits) {
  patient.hears = true;
  start();
  await_long_idle_time();
  on_demand.expedite(Because::something_will_come);
  on_demand.cancel_expedite();
  const int checks = patient.checks, ended = platform.ended;
  eventfd_write(patient.bell, 1);
  for (int k = 0; k < 200; ++k) std::this_thread::yield();
  EXPECT_EQ(patient.checks, checks);
  EXPECT_EQ(platform.ended, ended);
}

TEST_F(OnDemandExpedited, IsNotExpeditedInVainForEver) {
  start();
  EXPECT_TRUE(lose_trust()) << "it is trusted no more";
}

TEST_F(OnDemandExpedited, WhoComputesForLongWithoutItTrustsItAgain) {
  start();
  ASSERT_TRUE(lose_trust());
  until([&] {
    if (!spares_it()) return true;
    const std::uint64_t long_enough = posix_platform().now_ns() + 1'000'000;
    while (posix_platform().now_ns() < long_enough) continue;
    on_demand.cancel_expedite();
    return false;
  });
}

TEST(OnDemandParks, AndIsNotifiedAsOftenAsThereIsSomething) {
  if (!AsymmetricFences::available()) GTEST_SKIP() << "no membarrier(2): it never parks";
  Patient patient;
  OnDemandProgress on_demand(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::on_demand, {10'000, 20'000, 1}));
  for (int round = 0; round < 50; ++round) {
    until([&] { return on_demand.parked(); });
    const int sleeps = patient.sleeps;
    patient.coverage = Coverage::needed;
    if (on_demand.parked()) on_demand.notify();
    until([&] { return patient.sleeps > sleeps; });
    patient.coverage = Coverage::guaranteed;
    patient.wake();
  }
}

TEST(OnDemandAvoids, TheProgramsCoreWhileItHelps) {
  if (!has_two_cores()) GTEST_SKIP() << "it may run on one core only";
  Patient patient;
  patient.program = posix_platform().current_unit();
  patient.coverage = Coverage::needed;
  OnDemandProgress on_demand(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::on_demand, {10'000, 40'000, 1'000'000}));
  until([&] { return patient.turns > 0; });
  EXPECT_FALSE(patient.helps_there);
  patient.coverage = Coverage::recent;
  patient.wake();
  until([&] { return patient.checks_there.load(); });  // it may run anywhere again
}

/// The real platform, where at a yield the program computes elsewhere, or comes back to wait.
class OthersTurn final : public test::RealPlatform {
 public:
  std::function<void()> at_yield = [] {};
  std::atomic<int> yields{0};

  void yield() noexcept override {
    ++yields;
    at_yield();
    RealPlatform::yield();
  }
  int current_unit() noexcept override { return 0; }
  unsigned processors() noexcept override { return 2; }
};

TEST(OnDemandAvoids, TheCoreThatItGoesToToWhoComputesThere) {
  OthersTurn platform;
  Patient patient;
  platform.at_yield = [&] { patient.others = true; };  // the program has come back when that turn is over
  patient.program = 1;
  patient.coverage = Coverage::needed;
  OnDemandProgress on_demand(platform, patient, Idle::Budget{0, 0});
  ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::on_demand, {10'000, 40'000, 1'000'000}));
  until([&] { return platform.yields > 0 && patient.checks > 3; });
  EXPECT_EQ(patient.turns, 0);
}

TEST(OnDemandAvoids, TheWorkersCoreAtOnce) {
  if (!has_two_cores()) GTEST_SKIP() << "it may run on one core only";
  Patient patient;
  patient.worker = posix_platform().current_unit();
  patient.coverage = Coverage::needed;
  OnDemandProgress on_demand(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::idle_cores, {10'000, 40'000, 1'000'000}));
  until([&] { return patient.turns > 0; });
  EXPECT_FALSE(patient.checks_there) << "a thread that checks would wait there for the end of a callback";
  EXPECT_FALSE(patient.helps_there) << "so would a thread that helps";
}

TEST(OnDemandTimed, MakesATurnAtEachCheckWithoutAsking) {
  Patient patient;
  OnDemandProgress on_demand(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(on_demand.start(OnDemandProgress::Kind::timed, {10'000, 10'000, 0}));
  until([&] { return patient.steps > 20; });
  EXPECT_EQ(patient.checks, 0);
  EXPECT_EQ(patient.turns, 0);
}

}  // namespace
}  // namespace canele::ltask
