// SPDX-License-Identifier: BSD-3-Clause
//
// Tasks of the program (canele_task_*): which thread calls them, where, how often; and wrong calls.
//
// The test's thread, and workers. Progress, not time, tells a task that no thread may run yet from one that is late.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "ltask/topology.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

struct Calls {
  std::atomic<int> plain{0}, cancelled{0}, unit{-1};
  std::atomic<int> wanted{1};  ///< plain calls, then it ends
  int end = CANELE_TASK_DONE;

  static int count(canele_task_t*, int cancelled, void* argument) {
    auto& calls = *static_cast<Calls*>(argument);
    calls.unit = sched_getcpu();
    if (cancelled != 0) {
      ++calls.cancelled;
      return calls.end;
    }
    return ++calls.plain < calls.wanted ? int{CANELE_TASK_AGAIN} : calls.end;
  }
};

struct Ending {
  canele_condition_t condition{};
  static int signal(canele_task_t*, int, void* argument) {
    canele_condition_signal(&static_cast<Ending*>(argument)->condition, 1);
    return CANELE_TASK_DONE;
  }
};

class Tasks : public testing::Test {
 protected:
  Tasks() : job_({1, {comm::find_driver("self")}, "aggregate", {"CANELE_WORKER=none"}}) {}
  int submit(canele_task_t& task, Calls& calls, canele_place kind = CANELE_PLACE_ANY, int index = 0) {
    return canele_task_submit(job_.handle(0), &task, Calls::count, &calls, kind, index);
  }
  void make_progress(int turns = 4) {
    for (int i = 0; i < turns; ++i) canele_progress(job_.handle(0));
  }

  LocalJob job_;
  canele_task_t task_{};
  Calls calls_;
};

TEST_F(Tasks, IsCalledByWhoMakesProgress) {
  ASSERT_EQ(submit(task_, calls_), CANELE_OK);
  EXPECT_EQ(calls_.plain, 0) << "not by its submission";
  EXPECT_EQ(canele_task_in_use(&task_), 1);
  make_progress();
  EXPECT_EQ(calls_.plain, 1);
  EXPECT_EQ(canele_task_in_use(&task_), 0);
}

TEST_F(Tasks, IsCalledOnceATurnAsLongAsItWants) {
  calls_.wanted = 3;
  ASSERT_EQ(submit(task_, calls_), CANELE_OK);
  for (const int seen : {1, 2, 3, 3}) {
    make_progress(1);
    EXPECT_EQ(calls_.plain, seen);
  }
}

TEST_F(Tasks, IsCalledByTheWorkerAndByWhoWaits) {
  ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_BOUND), CANELE_OK);
  ASSERT_EQ(submit(task_, calls_), CANELE_OK);
  while (canele_task_in_use(&task_) != 0) std::this_thread::yield();
  EXPECT_EQ(calls_.plain, 1);
  ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_NONE), CANELE_OK);
  Ending ending;
  ASSERT_EQ(canele_task_submit(job_.handle(0), &task_, Ending::signal, &ending, CANELE_PLACE_ANY, 0), CANELE_OK);
  EXPECT_EQ(canele_condition_wait(job_.handle(0), &ending.condition, 1), CANELE_OK);
}

TEST_F(Tasks, ASleepingOnDemandThreadComesForIt) {
  ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_AUTO), CANELE_OK);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(submit(task_, calls_), CANELE_OK);
    while (canele_task_in_use(&task_) != 0) std::this_thread::yield();
  }
  EXPECT_EQ(calls_.plain, 3);
}

TEST_F(Tasks, CancelMaskUnmask) {
  calls_.wanted = 1000;
  canele_task_mask(&task_);
  ASSERT_EQ(submit(task_, calls_), CANELE_OK);
  make_progress();
  EXPECT_EQ(calls_.plain, 0);
  canele_task_unmask(&task_);
  make_progress(2);
  EXPECT_EQ(calls_.plain, 2);
  canele_task_mask(&task_);
  make_progress();
  EXPECT_EQ(calls_.plain, 2);
  EXPECT_EQ(canele_task_cancel(&task_), CANELE_OK);
  make_progress();
  EXPECT_EQ(calls_.plain, 2);
  EXPECT_EQ(calls_.cancelled, 1);
  EXPECT_EQ(canele_task_cancel(&task_), CANELE_ESTATE);
}

TEST_F(Tasks, OneThatIsGoneIsNotTouched) {
  auto* task = new canele_task_t{};
  ASSERT_EQ(canele_task_submit(
                job_.handle(0), task,
                [](canele_task_t* one, int, void*) {
                  delete one;
                  return int{CANELE_TASK_GONE};
                },
                nullptr, CANELE_PLACE_ANY, 0),
            CANELE_OK);
  make_progress();
}

TEST_F(Tasks, AreCalledWhereTheyBelong) {
  const ltask::Topology topology;
  const std::vector<int> own = topology.own_units();
  if (own.size() < 2) GTEST_SKIP() << "needs two processing units";
  const auto logical = [&](int os) {
    for (int i = 0; i < topology.units(); ++i) {
      if (topology.os_index(ltask::UnitIndex::logical, i) == os) return i;
    }
    return -1;
  };
  const int here = logical(own[0]), there = logical(own[1]);
  ASSERT_EQ(canele_worker_bind(job_.handle(0), CANELE_INDEX_LOGICAL, &here, 1), CANELE_OK);
  canele_task_t elsewhere{};
  Calls not_called;
  ASSERT_EQ(submit(elsewhere, not_called, CANELE_PLACE_UNIT, there), CANELE_OK);
  ASSERT_EQ(submit(task_, calls_, CANELE_PLACE_UNIT, here), CANELE_OK);
  while (canele_task_in_use(&task_) != 0) std::this_thread::yield();
  EXPECT_EQ(calls_.unit, own[0]);
  EXPECT_EQ(not_called.plain, 0);
  ASSERT_EQ(canele_worker_bind(job_.handle(0), CANELE_INDEX_LOGICAL, &there, 1), CANELE_OK);
  canele_task_t nothing{};  // wakes the worker, which then checks for tasks of its place
  Calls any;
  ASSERT_EQ(submit(nothing, any), CANELE_OK);
  while (canele_task_in_use(&elsewhere) != 0) std::this_thread::yield();
  EXPECT_EQ(not_called.unit, own[1]);
  while (canele_task_in_use(&nothing) != 0) std::this_thread::yield();
}

TEST_F(Tasks, BadInput) {
  EXPECT_EQ(canele_task_submit(nullptr, &task_, Calls::count, nullptr, CANELE_PLACE_ANY, 0), CANELE_EINVAL);
  EXPECT_EQ(canele_task_submit(job_.handle(0), &task_, nullptr, nullptr, CANELE_PLACE_ANY, 0), CANELE_EINVAL);
  EXPECT_EQ(submit(task_, calls_, CANELE_PLACE_CORE, 100'000), CANELE_EINVAL);
  EXPECT_NE(std::string(canele_error_detail()).find("there is no core with logical index 100000"), std::string::npos);
  EXPECT_EQ(submit(task_, calls_, static_cast<canele_place>(77)), CANELE_EINVAL);
  EXPECT_EQ(canele_task_cancel(&task_), CANELE_ESTATE);
  EXPECT_EQ(canele_task_cancel(nullptr), CANELE_EINVAL);
  ASSERT_EQ(submit(task_, calls_), CANELE_OK);
  EXPECT_EQ(submit(task_, calls_), CANELE_EBUSY);
  EXPECT_EQ(canele_finalize(job_.handle(0)), CANELE_EBUSY) << "and the engine goes on";
  make_progress();
  EXPECT_EQ(calls_.plain, 1);
}

TEST_F(Tasks, ABlockingCallInOneIsRefused) {
  struct Outcome {
    canele_engine_t* engine;
    int code = CANELE_OK;
  } outcome{job_.handle(0)};
  ASSERT_EQ(canele_task_submit(
                job_.handle(0), &task_,
                [](canele_task_t*, int, void* argument) {
                  auto& o = *static_cast<Outcome*>(argument);
                  o.code = canele_worker_stop(o.engine);
                  return int{CANELE_TASK_DONE};
                },
                &outcome, CANELE_PLACE_ANY, 0),
            CANELE_OK);
  make_progress();
  EXPECT_EQ(outcome.code, CANELE_EDEADLK);
}

/// Threads submit tasks, mask, unmask and cancel them, while two make progress: each submission ends once.
TEST_F(Tasks, ManyThreadsAtOnce) {
  constexpr int tasks = 4, rounds = 3000;
  std::vector<canele_task_t> all(tasks);
  std::atomic<int> ended{0}, over{0};
  struct Counting {
    std::atomic<int>* ended;
    int left = 0;
  };
  std::vector<Counting> counting(tasks);
  const auto function = [](canele_task_t*, int cancelled, void* argument) {
    auto& c = *static_cast<Counting*>(argument);
    if (cancelled == 0 && --c.left > 0) return int{CANELE_TASK_AGAIN};
    ++*c.ended;
    return int{CANELE_TASK_DONE};
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < tasks; ++t) {
    threads.emplace_back([&, t] {
      const auto at = static_cast<std::size_t>(t);
      for (int i = 0; i < rounds; ++i) {
        while (canele_task_in_use(&all[at]) != 0) std::this_thread::yield();
        counting[at] = {&ended, 1 + i % 4};
        EXPECT_EQ(canele_task_submit(job_.handle(0), &all[at], function, &counting[at], CANELE_PLACE_ANY, 0), 0);
        if (i % 3 == 0) canele_task_mask(&all[at]);
        if (i % 3 == 0) canele_task_unmask(&all[at]);
        if (i % 5 == 0) canele_task_cancel(&all[at]);
      }
      while (canele_task_in_use(&all[at]) != 0) std::this_thread::yield();
      ++over;
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (over != tasks) {
        if (canele_progress(job_.handle(0)) == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, tasks * rounds);
}

/// The time is a lower bound: no other thread could have ended the wait.
TEST_F(Tasks, AStuckWorkerAmongWorkersIsReliedOnForSomeTurnsButNotForEver) {
  struct Stuck {
    std::atomic<bool> begun{false}, over{false};
    static int stay(canele_task_t*, int, void* argument) {
      auto& stuck = *static_cast<Stuck*>(argument);
      stuck.begun = true;
      stuck.begun.notify_one();
      stuck.over.wait(false);
      return CANELE_TASK_DONE;
    }
  } stuck;
  Ending ending;
  canele_task_t second{};
  ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_BOUND), CANELE_OK);
  job_.engine(0).progress.worker.keep_among_workers(true);
  ASSERT_EQ(canele_task_submit(job_.handle(0), &task_, Stuck::stay, &stuck, CANELE_PLACE_ANY, 0), CANELE_OK);
  stuck.begun.wait(false);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(canele_task_submit(job_.handle(0), &second, Ending::signal, &ending, CANELE_PLACE_ANY, 0), CANELE_OK);
  ASSERT_EQ(canele_condition_wait(job_.handle(0), &ending.condition, 1), CANELE_OK);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
  stuck.over = true;
  stuck.over.notify_one();
  ASSERT_EQ(canele_worker_use(job_.handle(0), CANELE_WORKER_NONE), CANELE_OK);
  EXPECT_FALSE(job_.engine(0).progress.worker.among_workers()) << "it has gone";
}

}  // namespace
}  // namespace canele::test
