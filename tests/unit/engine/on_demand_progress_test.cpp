// SPDX-License-Identifier: BSD-3-Clause
//
// The on-demand threads of an engine: pending communication moves while no thread is in the library, also while the
// worker is in a callback. A waiting thread takes over from them.
//
// The test's own thread sleeps on a condition that callbacks signal, so that cores are idle.
#include <poll.h>
#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// An event that another thread signals once.
class Signal {
 public:
  void happen() {
    const std::lock_guard guard(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  void await() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

void tell(canele_request_t*, unsigned, void* event) { static_cast<Signal*>(event)->happen(); }

struct OnDemandKind {
  const char* driver;
  unsigned kinds;
  const char* name;
};

class OnDemandKinds : public testing::TestWithParam<OnDemandKind> {
 protected:
  OnDemandKinds()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam().driver)}, "aggregate", {}}),
        s_(job_.open("on-demand")) {
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(canele_worker_use(job_.handle(rank), GetParam().kinds), CANELE_OK) << canele_error_detail();
  }
  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(OnDemandKinds, LargeMessagesMoveWhileNobodyIsInTheLibrary) {
  constexpr std::size_t length = 1 << 20;
  for (unsigned round = 0; round < 10; ++round) {
    const auto out = pattern(length, round);
    std::vector<std::uint8_t> in(length);
    canele_request_t send{}, receive{};
    Signal sent, received;
    ASSERT_EQ(canele_irecv(s_[1], 0, round, CANELE_TAG_EXACT, in.data(), in.size(), &receive), CANELE_OK);
    ASSERT_EQ(canele_request_on_event(&receive, CANELE_EVENT_FINALIZED, tell, &received), CANELE_OK);
    ASSERT_EQ(canele_isend(s_[0], 1, round, out.data(), out.size(), &send), CANELE_OK);
    ASSERT_EQ(canele_request_on_event(&send, CANELE_EVENT_FINALIZED, tell, &sent), CANELE_OK);
    received.await();
    sent.await();
    EXPECT_EQ(in, out);
  }
}

/// Again and again an on-demand thread sleeps on the drivers when a thread begins to wait there.
TEST_P(OnDemandKinds, LeaveTheDriversToAThreadThatWaits) {
  constexpr int rounds = 200;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      int ball = 0;
      canele_request_t receive{}, send{};
      canele_irecv(s_[1], 0, 1, CANELE_TAG_EXACT, &ball, sizeof ball, &receive);
      canele_wait(&receive, nullptr);
      canele_isend(s_[1], 0, 1, &ball, sizeof ball, &send);
      canele_wait(&send, nullptr);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    int back = -1;
    canele_request_t receive{}, send{};
    ASSERT_EQ(canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, &back, sizeof back, &receive), CANELE_OK);
    for (int turn = 0; i % 4 == 0 && turn < 300 && !job_.engine(0).progress.on_demand.asleep(); ++turn)
      std::this_thread::yield();
    ASSERT_EQ(canele_isend(s_[0], 1, 1, &i, sizeof i, &send), CANELE_OK);
    ASSERT_EQ(canele_wait(&receive, nullptr), CANELE_OK);
    ASSERT_EQ(canele_wait(&send, nullptr), CANELE_OK);
    EXPECT_EQ(back, i);
  }
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, OnDemandKinds,
                         testing::Values(OnDemandKind{"shm", CANELE_WORKER_AUTO, "ShmAuto"},
                                         OnDemandKind{"tcp", CANELE_WORKER_AUTO, "TcpAuto"},
                                         OnDemandKind{"shm", CANELE_WORKER_IDLE, "ShmIdle"},
                                         OnDemandKind{"tcp", CANELE_WORKER_IDLE, "TcpIdle"},
                                         OnDemandKind{"shm", CANELE_WORKER_TIMER, "ShmTimer"},
                                         OnDemandKind{"tcp", CANELE_WORKER_TIMER, "TcpTimer"},
                                         OnDemandKind{"tcp", CANELE_WORKER_BOUND | CANELE_WORKER_IDLE,
                                                      "TcpBoundAndIdle"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(OnDemandThread, IsToldWhereTheProgramComputesByLongPosts) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {}});
  const auto s = job.open("on-demand");
  std::thread([&] {
    const int here = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    std::vector<std::uint8_t> in(4 << 20), out(in.size(), 1);
    int small_in = 0;
    const int small_out = 1;
    const auto exchange = [&](unsigned tag, void* to, const void* from, std::size_t length) {
      canele_request_t send{}, receive{};
      ASSERT_EQ(canele_irecv(s[1], 0, tag, CANELE_TAG_EXACT, to, length, &receive), CANELE_OK);
      ASSERT_EQ(canele_isend(s[0], 1, tag, from, length, &send), CANELE_OK);
      ASSERT_TRUE(job.finish(receive) && job.finish(send));
    };
    exchange(1, &small_in, &small_out, sizeof small_in);
    EXPECT_EQ(job.engine(0).program_unit(), -1);
    exchange(2, in.data(), out.data(), in.size());
    EXPECT_EQ(job.engine(0).program_unit(), job.engine(0).oversubscribed ? -1 : here);
    EXPECT_EQ(job.engine(1).program_unit(), job.engine(1).oversubscribed ? -1 : here);
    EXPECT_EQ(in, out);
  }).join();
}

TEST(OnDemandThread, IsToldWhatComesOverSockets) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {"CANELE_WORKER=none"}});
  const auto s = job.open("on-demand");
  const auto readable = [&](int timeout_ms) {
    pollfd one{job.engine(1).descriptor(), POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1;
  };
  for (int round = 0; round < 20; ++round) {
    const int out = round;
    int in = -1;
    canele_request_t send{}, receive{};
    ASSERT_EQ(canele_irecv(s[1], 0, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
    if (round > 0) {
      ASSERT_TRUE(job.engine(1).heeds_arrivals());
      EXPECT_FALSE(readable(0));
    }
    ASSERT_EQ(canele_isend(s[0], 1, 1, &out, sizeof out, &send), CANELE_OK);
    if (round > 0) {
      while (!comm::request_of(&send).finalized())
        canele_progress(canele_session_engine(s[0]));  // it may not leave at once
      EXPECT_TRUE(readable(-1));
      EXPECT_TRUE(job.engine(1).heeds_arrivals()) << "what is there is looked after";
      EXPECT_FALSE(readable(0));
      EXPECT_EQ(in, out);
    }
    ASSERT_TRUE(job.finish(receive) && job.finish(send));  // connects, the first time
  }
}

/// Otherwise all of the posts would be left to the on-demand thread: two to three times as slow where it shares the
/// core.
TEST(OnDemandThread, LeavesAStreamOfPostsToWhoPosts) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("shm")}, "aggregate", {}});
  const auto s = job.open("on-demand");
  comm::Engine& engine = job.engine(0);
  std::vector<canele_request_t> receives(200);
  std::vector<int> in(receives.size());
  std::size_t posted = 0;
  const auto post = [&](std::size_t count) {
    for (const std::size_t end = posted + count; posted < end; ++posted) {
      ASSERT_EQ(canele_irecv(s[0], 1, posted, CANELE_TAG_EXACT, &in[posted], sizeof(int), &receives[posted]),
                CANELE_OK);
    }
  };
  using Coverage = ltask::ProgressSource::Coverage;
  engine.check_coverage();
  EXPECT_EQ(engine.check_coverage(), Coverage::needed);
  post(3);
  EXPECT_EQ(engine.check_coverage(), Coverage::needed) << "a thread that posts a few, and computes, is helped at once";
  post(3);
  EXPECT_GE(engine.help(), 0);
  post(100);
  EXPECT_EQ(engine.help(), -1) << "it goes on posting";
  EXPECT_EQ(engine.check_coverage(), Coverage::poster_polls);
  EXPECT_EQ(engine.check_coverage(), Coverage::needed) << "no more posts: it computes";
  post(94);
  canele_progress(job.handle(0));
  EXPECT_EQ(engine.check_coverage(), Coverage::recent);
  for (std::size_t i = 0; i < posted; ++i) {
    const int out = static_cast<int>(i);
    canele_request_t send{};
    ASSERT_EQ(canele_isend(s[1], 0, i, &out, sizeof out, &send), CANELE_OK);
    ASSERT_TRUE(job.finish(receives[i]) && job.finish(send));
    EXPECT_EQ(in[i], out);
  }
}

/// The first message's callback, on the worker, waits for the second message's callback, which the on-demand thread
/// runs.
TEST(OnDemandBesideWorker, HelpsWhileTheWorkerIsInACallback) {
  LocalJob job;
  const auto s = job.open("callbacks");
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(canele_worker_use(job.handle(rank), CANELE_WORKER_BOUND | CANELE_WORKER_IDLE), CANELE_OK);
  for (int round = 0; round < 20; ++round) {
    struct Two {
      Signal entered, second, left;
    } two;
    int in[2] = {}, out[2] = {round, round + 1};
    canele_request_t receive[2]{}, send[2]{};
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(canele_irecv(s[1], 0, static_cast<unsigned>(i), CANELE_TAG_EXACT, &in[i], sizeof in[i], &receive[i]),
                0);
    const auto slow = [](canele_request_t*, unsigned, void* argument) {
      Two& both = *static_cast<Two*>(argument);
      both.entered.happen();
      both.second.await();
      both.left.happen();
    };
    ASSERT_EQ(canele_request_on_event(&receive[0], CANELE_EVENT_FINALIZED, slow, &two), CANELE_OK);
    ASSERT_EQ(canele_request_on_event(&receive[1], CANELE_EVENT_FINALIZED, tell, &two.second), CANELE_OK);
    ASSERT_EQ(canele_isend(s[0], 1, 0, &out[0], sizeof out[0], &send[0]), CANELE_OK);
    two.entered.await();
    ASSERT_EQ(canele_isend(s[0], 1, 1, &out[1], sizeof out[1], &send[1]), CANELE_OK);
    two.left.await();
    for (canele_request_t& one : send) ASSERT_EQ(canele_wait(&one, nullptr), CANELE_OK);
    EXPECT_EQ(in[0], out[0]);
    EXPECT_EQ(in[1], out[1]);
  }
}

/// A worker that falls asleep right after a check has moved no further, but arrivals wake it.
TEST(OnDemandBesideWorker, IsNotNeededWhileTheWorkerSleeps) {
  LocalJob job({1, {comm::find_driver("self")}, "aggregate", {}});
  comm::Engine& engine = job.engine(0);
  engine.progress.worker.start();
  while (engine.check_coverage() != ltask::ProgressSource::Coverage::guaranteed) std::this_thread::yield();
  EXPECT_TRUE(engine.others_progress());
  EXPECT_EQ(engine.help(), -1);
  engine.progress.worker.stop();
}

TEST(WorkerKinds, AnOnDemandThreadServesWhereAWorkerHasNoCore) {
  using Kind = ltask::OnDemandProgress::Kind;
  LocalJob job;
  comm::Engine& engine = job.engine(0);
  engine.placement.no_core_for_worker = true;
  EXPECT_FALSE(engine.shares_core()) << "no thread makes progress beside the program";
  ASSERT_EQ(canele_worker_use(job.handle(0), CANELE_WORKER_BOUND), CANELE_OK);
  EXPECT_EQ(canele_worker_active(job.handle(0)), 0);
  EXPECT_EQ(engine.progress.on_demand.kind(), Kind::on_demand);
  EXPECT_TRUE(engine.shares_core());
  const int first = 0;
  ASSERT_EQ(canele_worker_bind(job.handle(0), CANELE_INDEX_LOGICAL, &first, 1), CANELE_OK);
  EXPECT_EQ(canele_worker_active(job.handle(0)), 0);
  ASSERT_EQ(canele_worker_stop(job.handle(0)), CANELE_OK);
  EXPECT_EQ(engine.progress.on_demand.kind(), Kind::off);
  ASSERT_EQ(canele_worker_bind(job.handle(0), CANELE_INDEX_LOGICAL, &first, 1), CANELE_OK);
  EXPECT_EQ(engine.progress.on_demand.kind(), Kind::on_demand) << "it starts what makes progress";
}

TEST(WorkerKinds, AreRefusedWhereTheyDoNotGoTogether) {
  LocalJob job({1, {comm::find_driver("self")}, "fifo", {}});
  for (const unsigned kinds : {3u, 5u, 10u, 14u, 16u, ~0u}) {
    EXPECT_EQ(canele_worker_use(job.handle(0), kinds), CANELE_EINVAL) << kinds;
    EXPECT_NE(std::string(canele_error_detail()).find("BOUND with IDLE"), std::string::npos) << canele_error_detail();
  }
  EXPECT_EQ(canele_worker_use(nullptr, CANELE_WORKER_AUTO), CANELE_EINVAL);
  for (const unsigned kinds : {0u, 1u, 2u, 6u, 4u, 8u, 1u, 0u}) {
    EXPECT_EQ(canele_worker_use(job.handle(0), kinds), CANELE_OK) << kinds;
    EXPECT_EQ(canele_worker_active(job.handle(0)), (kinds & CANELE_WORKER_BOUND) != 0 ? 1 : 0);
  }
}

}  // namespace
}  // namespace canele::test
