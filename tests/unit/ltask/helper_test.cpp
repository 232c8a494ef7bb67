// SPDX-License-Identifier: BSD-3-Clause
//
// The helper by itself: it helps when it is needed, and only then; it parks, is summoned, sleeps, and stops.
#include "ltask/helper.hpp"

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

using Sight = Helped::Sight;
using Because = Helper::Because;

/// A progress source that answers as the test wants, and counts.
class Patient final : public Helped {
 public:
  std::atomic<Sight> sight{Sight::covered};
  std::atomic<bool> works{true}, others{false};
  std::atomic<int> looks{0}, questions{0}, turns{0}, steps{0}, sleeps{0};
  std::atomic<int> program{-1}, worker{-1};                  ///< where they run
  std::atomic<bool> looks_there{false}, helps_there{false};  ///< the thread may do so anywhere
  Sleeper sleeper{posix_platform()};
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<bool> hears{false};  ///< the bell rings when an event comes
  ~Patient() { close(bell); }

  int descriptor() const override { return bell; }
  bool heeds_arrivals() override { return hears.load(); }
  Sight look() override {
    looks_there = may_run_on(taken());
    ++looks;
    return sight.load();
  }
  bool unfinished() override {
    ++questions;
    return works.load();
  }
  int help() override {
    if (sight.load() != Sight::unattended || !works.load() || others.load()) return -1;
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

class HelperTest : public testing::TestWithParam<Helper::Kind> {
 protected:
  static constexpr Helper::Pace pace = {10'000, 40'000, 2};
  Patient patient;
  Helper helper{posix_platform(), patient, Idle::Budget{0, 0}};
};

TEST_P(HelperTest, HelpsWhenNeededAndSleepsWhileItDoes) {
  ASSERT_TRUE(helper.start(GetParam(), pace));
  until([&] { return patient.looks > 3; });
  EXPECT_EQ(patient.turns, 0);
  patient.sight = Sight::unattended;
  helper.summon();
  until([&] { return helper.asleep() && patient.sleeps > 0; });
  EXPECT_GT(patient.turns, 0);
  patient.sight = Sight::attended;
  const int looks = patient.looks;
  patient.wake();
  until([&] { return patient.looks > looks + 3; });
  EXPECT_FALSE(helper.asleep());
}

TEST_P(HelperTest, StopsWhateverItDoes) {
  for (int round = 0; round < 20; ++round) {
    patient.sight = round % 3 == 0 ? Sight::unattended : round % 3 == 1 ? Sight::covered : Sight::attended;
    ASSERT_TRUE(helper.start(GetParam(), pace));
    const int looks = patient.looks;
    if (round % 2 == 0) until([&] { return patient.looks > looks || helper.asleep(); });
    if (round % 4 == 0) until([&] { return patient.sight != Sight::unattended || patient.sleeps > 0; });
    helper.stop();
    EXPECT_EQ(helper.kind(), Helper::Kind::off);
    EXPECT_FALSE(helper.asleep());
    EXPECT_FALSE(helper.parked());
  }
}

TEST_P(HelperTest, StaysAwakeIfOthersComeBackAsItGoesToSleep) {
  patient.sight = Sight::unattended;
  patient.others = true;  // help() ends at once, and sleep() would, too
  ASSERT_TRUE(helper.start(GetParam(), pace));
  until([&] { return patient.looks > 5; });
  EXPECT_EQ(patient.turns, 0);
  EXPECT_EQ(patient.sleeps, 0);
}

TEST_P(HelperTest, AsksForWorkAndDoesNotHelpWithoutAny) {
  patient.works = false;
  patient.sight = Sight::unattended;
  ASSERT_TRUE(helper.start(GetParam(), pace));
  until([&] { return patient.questions > 3; });
  EXPECT_EQ(patient.turns, 0);
  patient.works = true;
  helper.summon();
  until([&] { return patient.turns > 0; });
}

TEST_P(HelperTest, AsksWhoPostsOneAfterTheOtherToMakeATurn) {
  patient.sight = Sight::in_passing;
  ASSERT_TRUE(helper.start(GetParam(), pace));
  for (int i = 0; i < 3; ++i) {
    until([&] { return helper.calls(); });
    EXPECT_FALSE(helper.parked());
    EXPECT_TRUE(helper.summon());
  }
  EXPECT_EQ(patient.questions, 0);
  EXPECT_EQ(patient.turns, 0);
  patient.sight = Sight::unattended;  // the program has left the library to compute
  until([&] { return patient.turns > 0; });
}

INSTANTIATE_TEST_SUITE_P(Kinds, HelperTest, testing::Values(Helper::Kind::on_demand, Helper::Kind::idle_cores),
                         [](const auto& one) {
                           return std::string(one.param == Helper::Kind::on_demand ? "OnDemand" : "IdleCores");
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

/// A helper that checks but is never needed dozes for longer and longer: here for an hour, after a moment.
class HelperHastened : public testing::Test {
 protected:
  static constexpr std::uint64_t an_hour = LongNaps::an_hour;
  static constexpr Helper::Pace pace = {10'000, an_hour, 1000};
  void start() {
    patient.sight = Sight::attended;
    ASSERT_TRUE(helper.start(Helper::Kind::on_demand, pace));
  }
  void await_long_doze() {
    until([&] { return LongNaps::is_long(platform.last_ns) && helper.dozes(); });
  }
  /// Returns whether hastening the helper has been in vain too often.
  bool spares_it() {
    await_long_doze();
    helper.hasten(Because::there_is_work);
    return !helper.hastened() && helper.was_called();  // otherwise it may have checked by now
  }
  /// Hastens the helper until it is no longer trusted: the caller waits at once each time, so hastening is of no use.
  bool lose_trust() {
    for (int times = 0; times < 1000; ++times) {
      const bool spared = spares_it();
      helper.relent();
      if (spared) return true;
    }
    return false;
  }
  LongNaps platform;
  Patient patient;
  Helper helper{platform, patient, Idle::Budget{0, 0}};
};

TEST_F(HelperHastened, LooksSoonAfterALongDoze) {
  constexpr std::uint64_t soon = pace.first_ns / 2;
  test::VirtualTime clock;
  Helper late(clock, patient, Idle::Budget{0, 0});
  patient.sight = Sight::attended;
  ASSERT_TRUE(late.start(Helper::Kind::on_demand, pace));
  for (int i = 0; i < 10; ++i) {
    clock.run(an_hour);
    ASSERT_TRUE(late.dozes());
    const int looks = patient.looks + 1;  // one is at the call itself
    late.hasten(Because::there_is_work);
    EXPECT_FALSE(late.dozes());
    EXPECT_TRUE(late.hastened());
    clock.run(soon - 1);
    EXPECT_EQ(patient.looks, looks);
    clock.run(1);
    EXPECT_EQ(patient.looks, looks + 1);
    EXPECT_FALSE(late.hastened());
  }
  clock.run(an_hour);
  patient.sight = Sight::unattended;
  late.hasten(Because::there_is_work);
  clock.pass(an_hour / 4);
  until([&] { return patient.turns > 0; });
}

TEST_F(HelperHastened, DoesNotLookIfSomebodyComesBack) {
  start();
  await_long_doze();
  helper.hasten(Because::there_is_work);
  helper.relent();
  EXPECT_FALSE(helper.hastened());
  helper.relent();  // nothing to take back
  helper.stop();    // from a nap of an hour, if need be
}

TEST_F(HelperHastened, LooksWhenSomethingComes) {
  patient.hears = true;
  start();
  await_long_doze();
  const int looks = patient.looks + 1;  // one is at the call itself
  helper.hasten(Because::something_will_come);
  EXPECT_TRUE(LongNaps::is_long(platform.last_ns)) << "a timer would wake it";
  for (int k = 0; k < 50; ++k) std::this_thread::yield();
  EXPECT_TRUE(helper.hastened());
  EXPECT_EQ(patient.looks, looks);
  eventfd_write(patient.bell, 1);
  until([&] { return patient.looks > looks; });
}

TEST_F(HelperHastened, DoesNotWaitForThatIfThereIsWork) {
  patient.hears = true;
  start();
  await_long_doze();
  helper.hasten(Because::there_is_work);
  until([&] { return !helper.hastened(); });
}

TEST_F(HelperHastened, DoesNotListenToWhatComesForWhoWaits) {
  patient.hears = true;
  start();
  await_long_doze();
  helper.hasten(Because::something_will_come);
  helper.relent();
  const int looks = patient.looks, ended = platform.ended;
  eventfd_write(patient.bell, 1);
  for (int k = 0; k < 200; ++k) std::this_thread::yield();
  EXPECT_EQ(patient.looks, looks);
  EXPECT_EQ(platform.ended, ended);
}

TEST_F(HelperHastened, NobodyIsHastenedInVainForEver) {
  start();
  EXPECT_TRUE(lose_trust()) << "it is trusted no more";
}

TEST_F(HelperHastened, WhoComputesForLongWithoutItTrustsItAgain) {
  start();
  ASSERT_TRUE(lose_trust());
  until([&] {
    if (!spares_it()) return true;
    const std::uint64_t long_enough = posix_platform().now_ns() + 1'000'000;
    while (posix_platform().now_ns() < long_enough) continue;
    helper.relent();
    return false;
  });
}

TEST(HelperParks, AndIsSummonedAsOftenAsThereIsSomething) {
  if (!AsymmetricFences::available()) GTEST_SKIP() << "no membarrier(2): it never parks";
  Patient patient;
  Helper helper(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(helper.start(Helper::Kind::on_demand, {10'000, 20'000, 1}));
  for (int round = 0; round < 50; ++round) {
    until([&] { return helper.parked(); });
    const int sleeps = patient.sleeps;
    patient.sight = Sight::unattended;
    if (helper.parked()) helper.summon();
    until([&] { return patient.sleeps > sleeps; });
    patient.sight = Sight::covered;
    patient.wake();
  }
}

TEST(HelperLeaves, TheProgramsCoreWhileItHelps) {
  if (!has_two_cores()) GTEST_SKIP() << "it may run on one core only";
  Patient patient;
  patient.program = posix_platform().current_unit();
  patient.sight = Sight::unattended;
  Helper helper(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(helper.start(Helper::Kind::on_demand, {10'000, 40'000, 1'000'000}));
  until([&] { return patient.turns > 0; });
  EXPECT_FALSE(patient.helps_there);
  patient.sight = Sight::attended;
  patient.wake();
  until([&] { return patient.looks_there.load(); });  // it may run anywhere again
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

TEST(HelperLeaves, TheCoreThatItGoesToToWhoComputesThere) {
  OthersTurn platform;
  Patient patient;
  platform.at_yield = [&] { patient.others = true; };  // the program has come back when that turn is over
  patient.program = 1;
  patient.sight = Sight::unattended;
  Helper helper(platform, patient, Idle::Budget{0, 0});
  ASSERT_TRUE(helper.start(Helper::Kind::on_demand, {10'000, 40'000, 1'000'000}));
  until([&] { return platform.yields > 0 && patient.looks > 3; });
  EXPECT_EQ(patient.turns, 0);
}

TEST(HelperLeaves, TheWorkersCoreAtOnce) {
  if (!has_two_cores()) GTEST_SKIP() << "it may run on one core only";
  Patient patient;
  patient.worker = posix_platform().current_unit();
  patient.sight = Sight::unattended;
  Helper helper(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(helper.start(Helper::Kind::idle_cores, {10'000, 40'000, 1'000'000}));
  until([&] { return patient.turns > 0; });
  EXPECT_FALSE(patient.looks_there) << "who looks would wait there for the end of a callback";
  EXPECT_FALSE(patient.helps_there) << "so would who helps";
}

TEST(HelperTimed, MakesATurnAtEachLookWithoutAsking) {
  Patient patient;
  Helper helper(posix_platform(), patient, Idle::Budget{0, 0});
  ASSERT_TRUE(helper.start(Helper::Kind::timed, {10'000, 10'000, 0}));
  until([&] { return patient.steps > 20; });
  EXPECT_EQ(patient.looks, 0);
  EXPECT_EQ(patient.turns, 0);
}

}  // namespace
}  // namespace canele::ltask
