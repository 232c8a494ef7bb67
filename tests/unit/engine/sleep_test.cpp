// SPDX-License-Identifier: BSD-3-Clause
//
// Going to sleep and what follows.
//
// Who: unit_engine. Threads: one. Surprise: the sleep really happens, and ends at its limit, a millisecond.
#include "local_job.hpp"

namespace canele::test {
namespace {

/// A driver with no peer yet is polled in one of many turns. Where every turn ends in a sleep that would be one of many
/// sleeps, and a peer that wants to connect would wait for seconds.
TEST(Sleep, EveryDriverIsPolledInTheTurnAfterIt) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {}});
  comm::Engine& engine = job.engine(0);
  ASSERT_EQ(engine.system_slots.size(), 1u);
  const drivers::Driver& driver = *engine.system_slots[0]->driver;
  engine.step();
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t before = driver.counters.polls;
    engine.step();
    EXPECT_EQ(driver.counters.polls, before) << "nobody is connected: seldom";
    engine.sleep(1'000'000);
    engine.step();
    EXPECT_EQ(driver.counters.polls, before + 1) << "round " << round;
  }
}

}  // namespace
}  // namespace canele::test
