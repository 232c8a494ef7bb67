// SPDX-License-Identifier: BSD-3-Clause
//
// The four ways in which a host runtime lets communication progress (docs/progress.md): in each, messages
// small and large go both ways while the runtime's own thread computes.
//
// A runtime's thread for each rank, and the threads that the mode adds. "Computes" is a wait for a flag that a callback
// sets, without a call of the library. Where no thread makes progress that would last for ever, as the last test shows.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::size_t few_bytes = 8, many_bytes = 300'000;

/// The names of the tests are the modes of the documentation.
class HostModes : public testing::TestWithParam<const char*> {
 protected:
  HostModes()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {"CANELE_WORKER=none"}}),
        sessions_(job_.open("modes")) {}

  /// A rank's runtime: posts both ways, and is told of the ends by callbacks.
  struct Rank {
    canele_request_t sends[2] = {}, receives[2] = {};
    std::vector<std::uint8_t> out[2] = {pattern(few_bytes, 1), pattern(many_bytes, 2)};
    std::vector<std::uint8_t> in[2] = {std::vector<std::uint8_t>(few_bytes), std::vector<std::uint8_t>(many_bytes)};
    std::atomic<int> ended{0};

    static void count(canele_request_t*, unsigned, void* argument) { ++static_cast<Rank*>(argument)->ended; }
    bool done() const { return ended == 4; }
  };

  void post(int rank) {
    Rank& r = ranks_[rank];
    canele_session_t* const session = sessions_[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 2; ++i) {
      const auto tag = static_cast<std::uint64_t>(i);
      canele_irecv(session, 1 - rank, tag, CANELE_TAG_EXACT, r.in[i].data(), r.in[i].size(), &r.receives[i]);
      canele_isend(session, 1 - rank, tag, r.out[i].data(), r.out[i].size(), &r.sends[i]);
      canele_request_on_event(&r.receives[i], CANELE_EVENT_FINALIZED, Rank::count, &r);
      canele_request_on_event(&r.sends[i], CANELE_EVENT_FINALIZED, Rank::count, &r);
    }
  }
  void post_both() {
    for (const int rank : {0, 1}) post(rank);
  }
  bool done() const { return ranks_[0].done() && ranks_[1].done(); }
  void compute() const {
    while (!done()) std::this_thread::yield();
  }
  void progress() {
    for (const int rank : {0, 1}) canele_progress(job_.handle(rank));
  }
  static void wait_for_all(Rank& rank) {
    for (canele_request_t& one : rank.receives) EXPECT_EQ(canele_wait(&one, nullptr), CANELE_OK);
    for (canele_request_t& one : rank.sends) EXPECT_EQ(canele_wait(&one, nullptr), CANELE_OK);
  }
  void check() {
    for (const Rank& rank : ranks_) {
      for (int i = 0; i < 2; ++i) EXPECT_EQ(rank.in[i], rank.out[i]);
    }
  }

  LocalJob job_;
  std::vector<canele_session_t*> sessions_;
  Rank ranks_[2];
};

TEST_P(HostModes, ItsOwnThreadForUs) {
  for (const int rank : {0, 1}) {
    ASSERT_EQ(canele_worker_bind(job_.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0), CANELE_OK);
  }
  post_both();
  compute();
  check();
}

TEST_P(HostModes, ItGivesAThreadAndTakesItBack) {
  canele_condition_t enough[2] = {};
  std::vector<std::thread> given;
  for (const int rank : {0, 1}) {
    given.emplace_back([&, rank] { EXPECT_EQ(canele_condition_wait(job_.handle(rank), &enough[rank], 1), CANELE_OK); });
  }
  post_both();
  compute();
  for (canele_condition_t& one : enough) canele_condition_signal(&one, 1);
  for (std::thread& one : given) one.join();
  check();
}

TEST_P(HostModes, ItsIdleHook) {
  post_both();
  std::thread idle([&] {  // the code of a scheduler's thread that finds nothing to run
    while (!done()) progress();
  });
  compute();
  idle.join();
  check();
}

TEST_P(HostModes, Nothing) {
  post_both();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(done()) << "a large message needs progress at the other end";
  std::thread other([&] { wait_for_all(ranks_[1]); });
  wait_for_all(ranks_[0]);
  other.join();
  while (!done()) progress();  // a callback may come after the end that a wait sees
  check();
}

INSTANTIATE_TEST_SUITE_P(Drivers, HostModes, testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace canele::test
