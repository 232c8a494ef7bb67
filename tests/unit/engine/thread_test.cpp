// SPDX-License-Identifier: BSD-3-Clause
//
// Many threads at once: posting, sending, cancelling, waiting, with and without a worker. For TSan as much as for its
// own checks.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

struct Parameters {
  const char* driver;
  bool worker;
};

class Threads : public testing::TestWithParam<Parameters> {
 protected:
  Threads()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam().driver)}, "priority", {}}),
        s_(job_.open("threads")) {
    if (!GetParam().worker) return;
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(canele_worker_bind(job_.handle(rank), CANELE_INDEX_LOGICAL, nullptr, 0), 0);
  }
  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(Threads, EightThreadsPingPongOnTheirOwnTags) {
  constexpr int pairs = 4, rounds = 500;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int side = 0; side < 2; ++side) {
    for (int t = 0; t < pairs; ++t) {
      threads.emplace_back([&, side, t] {
        for (int i = 0; i < rounds; ++i) {
          canele_request_t send{}, receive{};
          const std::uint64_t out = static_cast<std::uint64_t>(t) << 32 | static_cast<unsigned>(i);
          std::uint64_t in = 0;
          const auto tag = static_cast<std::uint64_t>(t);
          canele_session_t* s = s_[static_cast<std::size_t>(side)];
          if (side == 0) canele_isend(s, 1, tag, &out, sizeof out, &send);
          canele_irecv(s, 1 - side, tag, CANELE_TAG_EXACT, &in, sizeof in, &receive);
          wrong += canele_wait(&receive, nullptr) != CANELE_OK || in != out;
          if (side == 1) canele_isend(s, 0, tag, &out, sizeof out, &send);
          wrong += canele_wait(&send, nullptr) != CANELE_OK;
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Threads, PostSendAndCancelAtOnce) {
  constexpr int senders = 3, per_sender = 2000;
  std::atomic<int> received{0}, cancelled{0}, wrong{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < senders; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < per_sender; ++i) {
        canele_request_t send{};
        const int value = 42;
        canele_isend(s_[0], 1, 1, &value, sizeof value, &send);
        wrong += canele_wait(&send, nullptr) != CANELE_OK;
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        canele_request_t receive{};
        int value = 0;
        canele_irecv(s_[1], CANELE_ANY_SOURCE, 1, CANELE_TAG_EXACT, &value, sizeof value, &receive);
        int done = 0;
        for (int i = 0; i < 20 && done == 0; ++i) canele_test(&receive, &done, nullptr);
        if (done == 0) canele_cancel(&receive);
        const int code = canele_wait(&receive, nullptr);
        if (code == CANELE_ECANCELED) {
          ++cancelled;
        } else {
          wrong += code != CANELE_OK || value != 42;
          if (++received == senders * per_sender) over = true;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(received, senders * per_sender);
}

TEST_P(Threads, WaitAnyAmongManyAndConditions) {
  constexpr int count = 200;
  std::vector<canele_request_t> receives(count);
  std::vector<canele_request_t*> pointers;
  std::vector<int> values(count);
  canele_condition_t condition{};
  for (std::size_t i = 0; i < count; ++i) {
    canele_irecv(s_[1], 0, i, CANELE_TAG_EXACT, &values[i], sizeof(int), &receives[i]);
    pointers.push_back(&receives[i]);
  }
  std::thread sender([&] {
    canele_condition_wait(job_.handle(0), &condition, 4);
    for (int i = count - 1; i >= 0; --i) {
      canele_request_t send{};
      canele_isend(s_[0], 1, static_cast<std::uint64_t>(i), &i, sizeof i, &send);
      canele_wait(&send, nullptr);
    }
  });
  canele_condition_signal(&condition, 4);
  for (int i = 0; i < count; ++i) {
    std::size_t index = count;
    ASSERT_EQ(canele_wait_any(count, pointers.data(), &index, nullptr), CANELE_OK);
    ASSERT_LT(index, static_cast<std::size_t>(count));
    EXPECT_EQ(values[index], static_cast<int>(index));
    pointers[index] = nullptr;
  }
  sender.join();
}

INSTANTIATE_TEST_SUITE_P(Modes, Threads,
                         testing::Values(Parameters{"shm", false}, Parameters{"shm", true}, Parameters{"tcp", false},
                                         Parameters{"tcp", true}),
                         [](const auto& i) {
                           return std::string(i.param.driver) + (i.param.worker ? "Worker" : "None");
                         });

/// Two threads of a rank, each with a partner elsewhere, on one core: how they wait.
class Rows : public testing::Test {
 protected:
  Rows() {
    if (engine_.oversubscribed) return;
    engine_.progress.waiters.heuristics.yielded(true);  // other threads had the core meanwhile
  }
  comm::Engine::Spin plan() {
    comm::Engine::Spin spin;
    std::thread([&] { spin = engine_.plan_spin_beside(1); }).join();
    return spin;
  }
  LocalJob job_{{2, {comm::find_driver("self"), comm::find_driver("shm")}, "aggregate", {"CANELE_WORKER=none"}}};
  comm::Engine& engine_ = job_.engine(0);
};

TEST_F(Rows, EndAfterSomeThousandWaits) {
  if (engine_.oversubscribed) GTEST_SKIP() << "more ranks than cores";
  int row = 1;
  while (engine_.plan_spin_beside(1).turns > 0) ++row;
  EXPECT_EQ(row, 4096);
  EXPECT_GT(engine_.plan_spin_beside(1).turns, 0) << "and another one begins";
}

TEST_F(Rows, BeginWithTimeForTheOtherSideToChangeThreads) {
  if (engine_.oversubscribed) GTEST_SKIP() << "more ranks than cores";
  const comm::Engine::Spin usual = engine_.plan_spin_beside(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(engine_.plan_spin_beside(1).turns, usual.turns);
  std::thread([&] {
    const comm::Engine::Spin first = engine_.plan_spin_beside(1);
    EXPECT_GT(first.turns, usual.turns);
    EXPECT_EQ(first.others, 0) << "what is for the other thread means that its partner still has the core";
    for (int i = 0; i < 16; ++i) engine_.plan_spin_beside(1);
    EXPECT_EQ(engine_.plan_spin_beside(1).turns, usual.turns);
    EXPECT_EQ(engine_.plan_spin_beside(1).others, 1);
  }).join();
}

TEST_F(Rows, AreNotWaitedForWhereEachThreadHasOneMessage) {
  if (engine_.oversubscribed) GTEST_SKIP() << "more ranks than cores";
  const comm::Engine::Spin usual = engine_.plan_spin_beside(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(plan().turns, usual.turns);
    EXPECT_EQ(engine_.plan_spin_beside(1).turns, usual.turns);
  }
}

}  // namespace
}  // namespace canele::test
