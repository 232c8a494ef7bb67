// SPDX-License-Identifier: BSD-3-Clause
//
// Going to sleep and what follows. One thread. The sleep really happens, and ends at its limit, a millisecond.
#include <cstdint>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// A driver with no peer yet is polled in one of many turns. Where every turn ends in a sleep that would be one of many
/// sleeps, and a peer that wants to connect would wait for seconds.
TEST(Sleep, EveryDriverIsPolledInTheTurnAfterIt) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {}});
  comm::Engine& engine = job.engine(0);
  ASSERT_EQ(engine.driver_set.system.size(), 1u);
  const drivers::Driver& driver = *engine.driver_set.system[0]->driver;
  engine.step();
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t before = driver.polls();
    engine.step();
    EXPECT_EQ(driver.polls(), before) << "no rank is connected: seldom";
    engine.sleep(1'000'000);
    engine.step();
    EXPECT_EQ(driver.polls(), before + 1) << "round " << round;
  }
}

/// The first message to the own rank needs a poll of a driver that has had no events yet: a sleeping thread is woken.
TEST(Sleep, EndsWithTheFirstMessageToOneself) {
  LocalJob job({1, {comm::find_driver("self")}, "aggregate", {}});
  comm::Engine& engine = job.engine(0);
  const auto sessions = job.open("s");
  ASSERT_TRUE(engine.sleeper.try_claim());
  canele_request_t send{};
  ASSERT_EQ(canele_isend(sessions[0], 0, 5, nullptr, 0, &send), CANELE_OK);
  engine.sleeper.sleep(3'600'000'000'000);  // an hour: the test's limit comes first
  engine.sleeper.release();
  ASSERT_TRUE(job.finish(send));
}

/// A worker may have gone to sleep while this thread ran a chunk of a long copy; the next chunks are left in the queue.
TEST(Sleep, EndsWhenAThreadLeavesATaskThatItHasNotEnded) {
  LocalJob job({1, {comm::find_driver("self")}, "aggregate", {}});
  comm::Engine& engine = job.engine(0);
  struct Long : ltask::Task {
    comm::Engine* engine = nullptr;
    int chunks = 0;
  } copy;
  copy.engine = &engine;
  const auto chunk = [](ltask::Task& task) {
    auto& self = static_cast<Long&>(task);
    if (++self.chunks == 1000) return;
    self.prepare(self.function);
    self.engine->tasks.submit(self);
  };
  copy.prepare(chunk);
  engine.tasks.submit(copy);
  ASSERT_TRUE(engine.sleeper.try_claim()) << "as a worker that saw no task: this one is being run";
  engine.step();
  ASSERT_TRUE(engine.has_tasks()) << "some are left";
  engine.sleeper.sleep(3'600'000'000'000);  // an hour: the test's limit comes first
  engine.sleeper.release();
  while (engine.has_tasks()) engine.step();
  EXPECT_EQ(copy.chunks, 1000);
}

}  // namespace
}  // namespace canele::test
