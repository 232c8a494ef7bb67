// SPDX-License-Identifier: BSD-3-Clause
//
// Polls that find nothing: they yield the core where more threads want it than there are cores, and never elsewhere.
//
// One thread, once both ranks exist; a test says whether it is the one that has made the engines. The clock stands
// still, but for what a test adds: by a yield that lasts, by a gap between two polls.
#include <functional>

#include "tests/unit/ltask/real_platform.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// The real platform, but for its cores, its clock, its yields and the names of its threads.
class Cores final : public RealPlatform {
 public:
  explicit Cores(unsigned number) : number_(number) {}

  std::atomic<std::uint64_t> now{1'000'000'000};
  std::atomic<long> yields{0};
  std::uint64_t yield_ns = 300;  ///< how long each lasts: no other thread wants the core
  bool one_thread = true;

  std::uint64_t now_ns() noexcept override { return now += 20; }
  void yield() noexcept override {
    ++yields;
    now += yield_ns;
  }
  unsigned processors() noexcept override { return number_; }
  const void* this_thread() noexcept override { return one_thread ? nullptr : RealPlatform::this_thread(); }

 private:
  const unsigned number_;
};

/// A poll that finds nothing.
using Look = std::function<void(canele_session_t*, canele_request_t*)>;
struct Form {
  const char* name;
  Look look;
};

void test(canele_session_t*, canele_request_t* pending) {
  int done = -1;
  ASSERT_EQ(canele_test(pending, &done, nullptr), CANELE_OK);
  ASSERT_EQ(done, 0);
}
void queue_poll(canele_session_t* session, canele_request_t*) {
  canele_queue_t queue{};
  canele_request_t* ended = nullptr;
  ASSERT_EQ(canele_queue_poll(canele_session_engine(session), &queue, &ended, nullptr, 1), 0);
}
void progress(canele_session_t* session, canele_request_t*) {
  ASSERT_EQ(canele_progress(canele_session_engine(session)), 0);
}
void iprobe(canele_session_t* session, canele_request_t*) {
  int found = -1;
  ASSERT_EQ(canele_iprobe(session, 1, 7, CANELE_TAG_EXACT, &found, nullptr), CANELE_OK);
  ASSERT_EQ(found, 0);
}
void improbe(canele_session_t* session, canele_request_t*) {
  int found = -1;
  canele_request_t request{};
  ASSERT_EQ(canele_improbe(session, 1, 7, CANELE_TAG_EXACT, &found, &request, nullptr), CANELE_OK);
  ASSERT_EQ(found, 0);
}

class Polling : public testing::TestWithParam<Form> {
 protected:
  static constexpr int many = 20'000;
  static constexpr std::uint64_t lasting_ns = 50'000;

  /// Starts a job whose ranks are connected and have nothing to do; rank 0 has a receive pending.
  void start(unsigned cores, bool by_this_thread) {
    comm::poller_state = {};
    platform_ = std::make_unique<Cores>(cores);
    platform_->one_thread = by_this_thread;
    JobOptions options;
    options.settings = {"CANELE_WORKER=none"};
    options.platform = platform_.get();
    job_ = std::make_unique<LocalJob>(options);
    session_ = job_->open("s")[0];
    ASSERT_EQ(canele_irecv(session_, 1, 1, CANELE_TAG_EXACT, &got_, sizeof got_, &receive_), CANELE_OK);
    job_->until([&] { return job_->step_all() == 0; });
    platform_->yields = 0;
  }
  void TearDown() override {
    if (job_ != nullptr) canele_cancel(&receive_);
  }
  /// Returns the number of yields in so many empty polls.
  long looks(int count) {
    const long before = platform_->yields;
    for (int i = 0; i < count; ++i) GetParam().look(session_, &receive_);
    return platform_->yields - before;
  }

  std::unique_ptr<Cores> platform_;
  std::unique_ptr<LocalJob> job_;
  canele_session_t* session_ = nullptr;
  canele_request_t receive_{};
  int got_ = 0;
};

TEST_P(Polling, AloneOnAnIdleMachineNeverYields) {
  start(2, true);
  EXPECT_EQ(looks(10 * many), 0);
}

TEST_P(Polling, AHoleBetweenLooksThatAreFarApartIsTheProgramsOwnWork) {
  start(2, true);
  long yields = 0;
  for (int i = 0; i < 1000; ++i) {
    yields += looks(1);
    platform_->now += 5'000'000;
  }
  EXPECT_EQ(yields, 0);
}

TEST_P(Polling, WhereRanksShareTheCoresYieldsAfterAFewLooks) {
  start(1, true);
  EXPECT_GE(looks(many), many / 20);
  platform_->yield_ns = lasting_ns;
  looks(20);
  EXPECT_GE(looks(many), many * 9 / 10) << "another rank has each turn";
}

TEST_P(Polling, WhoLosesItsCoreGivesWayUntilOthersHaveGone) {
  start(2, true);
  looks(200);
  platform_->now += 3'000'000;
  platform_->yield_ns = lasting_ns;
  looks(200);
  EXPECT_GE(looks(many), many * 9 / 10);
  platform_->yield_ns = 300;
  EXPECT_LE(looks(4 * many), 500) << "no thread wants the core any more";
  EXPECT_EQ(looks(10 * many), 0);
}

TEST_P(Polling, AThreadBesideOthersAsksSeldomAndNotForLong) {
  start(2, false);
  EXPECT_LE(looks(4 * many), 8);
  EXPECT_EQ(looks(10 * many), 0);
}

TEST_P(Polling, AThreadBesideOthersThatWantTheCoreGivesWaySoon) {
  start(2, false);
  platform_->yield_ns = lasting_ns;
  EXPECT_GE(looks(100 + many), many * 9 / 10) << "before it has used up a turn";
}

INSTANTIATE_TEST_SUITE_P(All, Polling,
                         testing::Values(Form{"test", test}, Form{"queue_poll", queue_poll}, Form{"progress", progress},
                                         Form{"iprobe", iprobe}, Form{"improbe", improbe}),
                         [](const testing::TestParamInfo<Form>& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace canele::test
