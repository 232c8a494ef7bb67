// SPDX-License-Identifier: BSD-3-Clause
//
// What a thread leaves to the holder of the lock reaches the driver, although the holder makes no progress afterwards.
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// Rank 0 makes no progress: neither by a thread of the library nor by a step of the test.
TEST(HandOver, ALinkedSendLeavesWhenItsHolderUnlocks) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {"CANELE_WORKER=none"}});
  const auto sessions = job.open("test");
  const auto exchange = [&](auto send, auto done) {
    canele_request_t sent{}, received{};
    int out = 7, in = 0;
    ASSERT_EQ(canele_irecv(sessions[1], 0, 1, CANELE_TAG_EXACT, &in, sizeof in, &received), CANELE_OK);
    send([&] { ASSERT_EQ(canele_isend(sessions[0], 1, 1, &out, sizeof out, &sent), CANELE_OK); });
    done(received);
    EXPECT_EQ(in, 7);
    ASSERT_TRUE(job.finish(sent));
  };
  exchange([](auto send) { send(); }, [&](canele_request_t& received) { ASSERT_TRUE(job.finish(received)); });
  for (int i = 0; i < 100; ++i) job.step_all();
  exchange(
      [&](auto send) CANELE_NO_THREAD_SAFETY_ANALYSIS {
        job.engine(0).lock_for_callback();
        std::thread(send).join();  // finds the lock taken
        job.engine(0).unlock();
      },
      [&](canele_request_t& received) {
        for (int turn = 0; !comm::request_of(&received).finalized(); ++turn) {
          ASSERT_LT(turn, 1'000'000) << "the packet was not handed over";
          if (job.engine(1).step() == 0) std::this_thread::yield();
        }
      });
}

}  // namespace
}  // namespace canele::test
