// SPDX-License-Identifier: BSD-3-Clause
//
// The launcher reports that a rank has died: a driver that would not detect it is told, and answers when it is ready.
//
// One thread. No rank dies.
#include "comm/engine/connect.hpp"
#include "drivers/decorators/decorator.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using drivers::Rank;

bool sees_deaths;  ///< what the driver declares
int times_told;    ///< by the engine, in all ranks
bool still_busy;   ///< the driver still accesses the engine's memory

/// tcp that learns of the end of a peer from the engine only.
class Unaware final : public drivers::Decorator {
 public:
  Unaware() : Decorator(comm::find_driver("tcp")->create()) {}

 private:
  drivers::Status open_impl(drivers::DriverContext& context, drivers::Address* address, std::string* reason) override {
    const drivers::Status status = Decorator::open_impl(context, address, reason);
    capabilities_.detects_failure = sees_deaths;
    return status;
  }
  int poll_impl(int budget) override {
    const int events_seen = Decorator::poll_impl(budget);
    for (Rank dead = context().next_failed_rank(); dead >= 0; dead = context().next_failed_rank()) {
      ++times_told;
      dead_ = dead;
    }
    if (dead_ < 0 || still_busy) return events_seen;
    engine().failed(std::exchange(dead_, -1), true, "unaware: it died");
    return events_seen + 1;
  }

  Rank dead_ = -1;
};

const drivers::DriverFactory unaware{drivers::contract_version, "unaware", "for tests",
                                     [] { return std::unique_ptr<drivers::Driver>(new Unaware); },
                                     [] { return std::string(); }};

class Death : public testing::TestWithParam<bool> {
 protected:
  Death() {
    sees_deaths = GetParam();
    times_told = 0;
    still_busy = true;
    JobOptions options;
    options.settings = {"CANELE_VERBOSE=0"};
    options.drivers = {comm::find_driver("self"), &unaware};
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("death");
  }
  void launcher_says_that_rank_1_died() {
    comm::Engine& engine = job_->engine(0);
    ASSERT_TRUE(engine.try_lock());
    comm::peers::launcher_failed(engine, 1);
    engine.unlock();
  }
  void some_steps() {
    for (int i = 0; i < 200; ++i) job_->step_all();
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
};
INSTANTIATE_TEST_SUITE_P(Driver, Death, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "Sees" : "Unaware"); });

TEST_P(Death, IsToldToTheDriverOfAConnectionThatCannotSeeIt) {
  canele_request_t send{}, receive{}, never{};
  int value = 7, got = 0;
  ASSERT_EQ(canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, &got, sizeof got, &receive), CANELE_OK);
  ASSERT_EQ(canele_isend(s_[1], 0, 1, &value, sizeof value, &send), CANELE_OK);
  ASSERT_TRUE(job_->finish(receive) && job_->finish(send));
  ASSERT_EQ(canele_irecv(s_[0], 1, 2, CANELE_TAG_EXACT, &got, sizeof got, &never), CANELE_OK);
  launcher_says_that_rank_1_died();
  launcher_says_that_rank_1_died();
  some_steps();
  EXPECT_EQ(times_told, sees_deaths ? 0 : 1);
  EXPECT_FALSE(comm::request_of(&never).finalized()) << "the driver may be writing there";
  still_busy = false;
  some_steps();
  ASSERT_EQ(comm::request_of(&never).finalized(), !sees_deaths);
  if (!sees_deaths) {
    EXPECT_EQ(status_of(never).error, CANELE_EPEER);
  } else {
    EXPECT_EQ(canele_cancel(&never), CANELE_OK);
  }
}

TEST_P(Death, EndsWhatWaitsForAPeerThatIsNotConnectedYet) {
  canele_request_t send{};
  int value = 7;
  ASSERT_EQ(canele_isend(s_[0], 1, 1, &value, sizeof value, &send), CANELE_OK);
  launcher_says_that_rank_1_died();
  ASSERT_TRUE(comm::request_of(&send).finalized());
  EXPECT_EQ(status_of(send).error, CANELE_EPEER);
  EXPECT_EQ(times_told, 0);
}

TEST_P(Death, IsToldToAProbeAfterTheMessagesThatHadCome) {
  canele_request_t send{}, receive{};
  canele_status_t status{};
  int value = 7, found = 0;
  ASSERT_EQ(canele_isend(s_[1], 0, 1, &value, sizeof value, &send), CANELE_OK);
  ASSERT_TRUE(job_->finish(send));
  ASSERT_TRUE(job_->until(
      [&] { return canele_iprobe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, &status) == CANELE_OK && found == 1; }));
  still_busy = false;
  launcher_says_that_rank_1_died();
  some_steps();
  if (sees_deaths) return;  // the driver's connection still stands
  EXPECT_EQ(canele_improbe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, &receive, &status), CANELE_OK);
  ASSERT_EQ(found, 1);
  const canele_data_t data = canele_data_contiguous(&value, sizeof value);
  EXPECT_EQ(canele_receive_bind(&receive, &data), CANELE_OK);
  found = 5;
  EXPECT_EQ(canele_iprobe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, &status), CANELE_EPEER);
  EXPECT_EQ(canele_improbe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, &receive, &status), CANELE_EPEER);
  EXPECT_EQ(canele_iprobe(s_[0], 1, 1, CANELE_TAG_ANY, &found, &status), CANELE_EPEER);
  EXPECT_EQ(found, 5);
  EXPECT_EQ(canele_iprobe(s_[0], CANELE_ANY_SOURCE, 1, CANELE_TAG_EXACT, &found, &status), CANELE_OK);
  EXPECT_EQ(found, 0);
}

TEST_P(Death, IsToldToTheProbeOfAPeerThatIsNotConnectedYet) {
  int found = 0;
  EXPECT_EQ(canele_iprobe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, nullptr), CANELE_OK);
  launcher_says_that_rank_1_died();
  EXPECT_EQ(canele_iprobe(s_[0], 1, 1, CANELE_TAG_EXACT, &found, nullptr), CANELE_EPEER);
}

TEST_P(Death, IsToldToTheDriverOfAConnectionThatComesAfterwards) {
  canele_request_t send{};
  int value = 7;
  still_busy = false;
  job_->bury(1, 0);  // rank 0 has no connection with it yet; it connects afterwards
  ASSERT_EQ(canele_isend(s_[1], 0, 1, &value, sizeof value, &send), CANELE_OK);
  ASSERT_TRUE(job_->until([&] { return job_->engine(0).peers[1] != nullptr; }));
  some_steps();
  EXPECT_EQ(times_told, sees_deaths ? 0 : 1);
  EXPECT_EQ(job_->engine(0).peers[1]->disconnected(), !sees_deaths);
}

}  // namespace
}  // namespace canele::test
