// SPDX-License-Identifier: BSD-3-Clause
//
// What one call runs for others: a bounded number of operations, whatever they have linked; the rest is not lost.
//
// The test's own thread, which finds the lock taken by itself. Nothing depends on timing: a thread that posts while the
// lock is taken links its post, and one thread can do that as well as seven.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/engine/spin_wait.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t most_served = 32, most_ordered = 64;

class LockBudget : public testing::Test {
 protected:
  LockBudget() {
    JobOptions options;
    options.size = 2;
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("budget");
    receives_.resize(200);
    values_.resize(receives_.size());
  }
  comm::Engine& engine() { return job_->engine(1); }
  std::uint64_t run_for_others() { return engine().counters.read(comm::Counter::lock_queued); }
  /// Links many receives of one tag to a lock that is taken.
  void link_all() {
    engine().lock_for_callback();
    for (std::size_t i = 0; i < receives_.size(); ++i) post(i);
  }
  void post(std::size_t i) {
    ASSERT_EQ(canele_irecv(s_[1], 0, 7, CANELE_TAG_EXACT, &values_[i], sizeof values_[i], &receives_[i]), CANELE_OK);
  }
  /// Checks that they take the messages of that tag in the order in which they were posted.
  void expect_in_order() {
    for (std::uint32_t i = 0; i < receives_.size(); ++i) {
      canele_request_t request{};
      ASSERT_EQ(canele_isend(s_[0], 1, 7, &i, sizeof i, &request), CANELE_OK);
      ASSERT_TRUE(job_->finish(request));
    }
    for (std::uint32_t i = 0; i < receives_.size(); ++i) {
      ASSERT_TRUE(job_->finish(receives_[i]));
      EXPECT_EQ(values_[i], i);
    }
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
  std::vector<canele_request_t> receives_;
  std::vector<std::uint32_t> values_;
};

TEST_F(LockBudget, WhoLeavesTheLockRunsSoManyAndNoMore) {
  receives_.resize(most_ordered);
  link_all();
  const std::uint64_t before = run_for_others();
  engine().unlock();
  EXPECT_EQ(run_for_others() - before, most_served);
  EXPECT_TRUE(engine().lock.seems_put_down());
  while (engine().lock.seems_put_down()) job_->step_all();
  expect_in_order();
}

TEST_F(LockBudget, WhoLeavesTheLockOrdersSoManyAndNoMore) {
  link_all();
  const std::uint64_t before = run_for_others();
  engine().unlock();
  EXPECT_EQ(run_for_others(), before) << "the holder has put some of them in order";
  EXPECT_TRUE(engine().lock.seems_put_down());
  EXPECT_FALSE(engine().lock.try_lock()) << "a thread with something to post first must not overtake what is linked";
  std::size_t turns = 0;
  while (engine().lock.seems_put_down()) {
    const std::uint64_t at_first = run_for_others();
    job_->step_all();
    EXPECT_LE(run_for_others() - at_first, 2 * most_served);
    ASSERT_LE(++turns, receives_.size() / most_served + receives_.size() / most_ordered + 2);
  }
  EXPECT_GE(run_for_others() - before, receives_.size()) << "all of them, and what the engine itself has linked";
  expect_in_order();
}

/// A thread polls in a short wait while others link more and more.
TEST_F(LockBudget, WhoWaitsRunsSoManyAndNoMore) {
  link_all();
  const std::uint64_t before = run_for_others();
  EXPECT_FALSE(engine().spin_locked({1000, 0}, [] { return false; }));
  EXPECT_LE(run_for_others() - before, most_served) << "it has polled on with linked posts waiting";
  engine().unlock();
  EXPECT_LE(run_for_others() - before, 2 * most_served);
  EXPECT_TRUE(engine().lock.seems_put_down());
  while (engine().lock.seems_put_down()) job_->step_all();
  expect_in_order();
}

TEST_F(LockBudget, WhoPostsNextGoesOnAndOvertakesNothing) {
  receives_.resize(300);
  values_.resize(receives_.size());
  const std::size_t linked = 200;
  engine().lock_for_callback();
  for (std::size_t i = 0; i < linked; ++i) post(i);
  engine().unlock();
  for (std::size_t i = linked; i < receives_.size(); ++i) {
    const std::uint64_t before = run_for_others();
    post(i);
    EXPECT_LE(run_for_others() - before, 2 * most_served + 1)
        << "the post, and a turn that an on-demand thread may ask for";
  }
  EXPECT_FALSE(engine().lock.seems_put_down());
  expect_in_order();
}

TEST_F(LockBudget, WhoWaitsForAnAnswerGetsIt) {
  link_all();
  engine().unlock();
  int found = 0;
  canele_status_t status{};
  ASSERT_EQ(canele_iprobe(s_[1], 0, 8, CANELE_TAG_EXACT, &found, &status), CANELE_OK);
  EXPECT_EQ(found, 0);
  EXPECT_FALSE(engine().lock.seems_put_down()) << "it was the last";
  expect_in_order();
}

TEST_F(LockBudget, WhoMustHaveTheLockGetsItWithNothingLeft) {
  link_all();
  engine().unlock();
  engine().lock_for_callback();
  EXPECT_FALSE(engine().lock.pending());
  engine().unlock();
  expect_in_order();
}

}  // namespace
}  // namespace canele::test
