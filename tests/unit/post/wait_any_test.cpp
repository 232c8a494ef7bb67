// SPDX-License-Identifier: BSD-3-Clause
//
// The wait for one of many: each in its turn, of several engines, awake and asleep; and the test of many.
//
// One thread, and one that sends late. Ranks of a job are engines of this process, so one call can wait for requests of
// several.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class WaitAny : public testing::Test {
 protected:
  static constexpr std::size_t many = 1000;

  static JobOptions without_worker() {
    JobOptions options;
    options.settings = {"CANELE_WORKER=none"};
    return options;
  }
  WaitAny() { std::iota(sent_.begin(), sent_.end(), 0u); }
  void receive(int rank, std::uint64_t with, canele_request_t& request) {
    EXPECT_EQ(canele_irecv(sessions_[static_cast<std::size_t>(rank)], 1 - rank, with, CANELE_TAG_EXACT,
                           &got_[with % many], sizeof got_[0], &request),
              CANELE_OK);
  }
  /// Sends a message; the send ends at once, or with progress of its receiver.
  void send(int rank, std::uint64_t with, canele_request_t& request) {
    ASSERT_EQ(canele_isend(sessions_[static_cast<std::size_t>(rank)], 1 - rank, with, &sent_[with % many],
                           sizeof sent_[0], &request),
              CANELE_OK);
  }
  void meet() {
    canele_request_t receives[2]{}, sends[2]{};
    for (int rank = 0; rank < 2; ++rank) receive(rank, 1, receives[rank]);
    for (int rank = 0; rank < 2; ++rank) send(rank, 1, sends[rank]);
    for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(job_.finish(receives[rank]) && job_.finish(sends[rank]));
  }

  LocalJob job_{without_worker()};
  std::vector<canele_session_t*> sessions_ = job_.open("s");
  std::vector<std::uint32_t> got_ = std::vector<std::uint32_t>(many), sent_ = std::vector<std::uint32_t>(many);
};

TEST_F(WaitAny, AllEnginesWhoseRequestsAreWaitedForMakeProgress) {
  for (const int waiting : {0, 1}) {
    canele_request_t never{}, comes{}, sent{};
    receive(waiting, 7, never);
    receive(1 - waiting, 5, comes);
    send(waiting, 5, sent);
    canele_request_t* list[3] = {&comes, nullptr, &never};
    std::size_t index = 9;
    ASSERT_EQ(canele_wait_any(3, list, &index, nullptr), CANELE_OK);
    EXPECT_EQ(index, 0u);
    EXPECT_EQ(got_[5], 5u);
    std::swap(list[0], list[2]);
    ASSERT_EQ(canele_wait_any(3, list, &index, nullptr), CANELE_OK);
    EXPECT_EQ(index, 2u);
    ASSERT_TRUE(job_.finish(sent));
    canele_cancel(&never);
    ASSERT_TRUE(job_.finish(never));
  }
}

TEST_F(WaitAny, EachOfThoseThatAreDoneHasItsTurn) {
  meet();
  canele_request_t receives[4]{}, sends[4]{};
  canele_request_t* list[4] = {};
  for (std::uint64_t i = 0; i < 4; ++i) receive(0, 10 + i, receives[i]), list[i] = &receives[i];
  for (const std::uint64_t i : {0u, 1u, 3u}) send(1, 10 + i, sends[i]);
  ASSERT_TRUE(job_.finish(receives[0]) && job_.finish(receives[1]) && job_.finish(receives[3]));
  std::vector<std::size_t> found;
  comm::poller_state = {};
  for (int turn = 0; turn < 6; ++turn) {
    std::size_t index = 9;
    ASSERT_EQ(canele_wait_any(4, list, &index, nullptr), CANELE_OK);
    found.push_back(index);
  }
  EXPECT_EQ(found, (std::vector<std::size_t>{0, 1, 3, 0, 1, 3})) << "a program that leaves it in the list starves none";
  EXPECT_EQ(canele_find_done(4, list, 0), 0u);
  EXPECT_EQ(canele_find_done(4, list, 2), 3u);
  list[3] = nullptr;
  EXPECT_EQ(canele_find_done(4, list, 2), 4u);
  EXPECT_EQ(canele_find_done(0, nullptr, 0), 0u);
  send(1, 12, sends[2]);
  ASSERT_TRUE(job_.finish(receives[2]));
  for (canele_request_t& one : sends) ASSERT_TRUE(job_.finish(one));
}

TEST_F(WaitAny, OneOfManyWakesAThreadThatSleeps) {
  meet();
  std::vector<canele_request_t> receives(many);
  std::vector<canele_request_t*> list;
  for (std::uint64_t i = 0; i < many; ++i) {
    receive(0, i, receives[i]);
    list.push_back(&receives[i]);
  }
  for (const std::uint64_t last : {many - 1, many / 2, std::size_t{0}}) {
    const std::uint64_t parks = job_.engine(0).counters.read(comm::Counter::waiter_parks);
    std::thread sender([&] {
      while (job_.engine(0).counters.read(comm::Counter::waiter_parks) == parks) std::this_thread::yield();
      canele_request_t sent{};
      send(1, last, sent);
      while (!comm::request_of(&sent).finalized()) job_.engine(1).step();
    });
    std::size_t index = many;
    EXPECT_EQ(canele_wait_any(many, list.data(), &index, nullptr), CANELE_OK);
    sender.join();
    EXPECT_EQ(index, last);
    list[last] = nullptr;
  }
  for (canele_request_t& one : receives) {
    if (!comm::request_of(&one).finalized()) canele_cancel(&one);
  }
  job_.until([&] { return job_.step_all() == 0; });
}

}  // namespace
}  // namespace canele::test
