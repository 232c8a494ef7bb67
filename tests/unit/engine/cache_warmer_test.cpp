// SPDX-License-Identifier: BSD-3-Clause
//
// The cache warmer inside an engine: in idle turns, beside messages; no thread stays awake for it.
//
// One thread, and the engines' workers. The period is a microsecond, so that the cache warmer is nearly always due.
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

JobOptions heated() {
  JobOptions options;
  options.settings = {"CANELE_EXPERT_MATCHER=arrays", "CANELE_EXPERT_CACHE_WARMER=1"};
  return options;
}

TEST(EngineCacheWarmer, WarmsWhatReceivesAreKeptInAndMatchingStaysRight) {
  LocalJob job(heated());
  const auto sessions = job.open("s");
  constexpr std::size_t count = 200;
  std::vector<canele_request_t> receives(count), sends(count);
  std::vector<std::uint64_t> got(count), sent(count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(canele_irecv(sessions[0], 1, i, CANELE_TAG_EXACT, &got[i], 8, &receives[i]), CANELE_OK);
  }
  ASSERT_TRUE(job.until([&] { return job.engine(0).cache_warmer.passes() >= 3; }));
  EXPECT_GE(job.engine(0).cache_warmer.lines(), 3 * count / 2) << "two receives a line";
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t tag = i * 7 % count;
    sent[tag] = tag + 1000;
    ASSERT_EQ(canele_isend(sessions[1], 0, tag, &sent[tag], 8, &sends[tag]), CANELE_OK);
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(job.finish(receives[i]) && job.finish(sends[i]));
    EXPECT_EQ(got[i], i + 1000);
  }
}

TEST(EngineCacheWarmer, LetsTheWorkerSleep) {
  LocalJob job(heated());
  const auto sessions = job.open("s");
  canele_request_t receive{}, send{};
  std::uint64_t got = 0, sent = 7;
  ASSERT_EQ(canele_irecv(sessions[0], 1, 1, CANELE_TAG_EXACT, &got, 8, &receive), CANELE_OK);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(canele_worker_bind(job.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0), CANELE_OK);
  }
  const auto asleep = [&] { return job.engine(0).progress.worker.state() == ltask::Worker::State::sleeping; };
  while (!asleep()) std::this_thread::yield();  // with-timeout ends the test if it never sleeps
  const std::uint64_t passes = job.engine(0).cache_warmer.passes();
  EXPECT_GT(passes, 0u) << "the worker was idle for a while before it slept";
  ASSERT_EQ(canele_isend(sessions[1], 0, 1, &sent, 8, &send), CANELE_OK);
  ASSERT_EQ(canele_wait(&receive, nullptr), CANELE_OK);
  ASSERT_EQ(canele_wait(&send, nullptr), CANELE_OK);
  EXPECT_EQ(got, 7u);
}

TEST(EngineCacheWarmer, IsOffByDefault) {
  JobOptions options;
  options.size = 1;
  LocalJob job(options);
  for (int turn = 0; turn < 1000; ++turn) job.step_all();
  EXPECT_FALSE(job.engine(0).cache_warmer.on());
  EXPECT_EQ(job.engine(0).cache_warmer.passes(), 0u);
}

}  // namespace
}  // namespace canele::test
