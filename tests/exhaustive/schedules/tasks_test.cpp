// SPDX-License-Identifier: BSD-3-Clause
//
// The task queue, and tasks that are cancelled and masked, in every order of their steps: each submission is called
// for, and ends. The worlds run in the Explorer's threads. See protocols_test.cpp for the sources that run here.
#include <gtest/gtest.h>

#include "ltask/task.hpp"
#include "tests/exhaustive/schedules/every_order.hpp"
#include "tests/exhaustive/schedules/stand_ins.hpp"

namespace canele::exhaustive {
namespace {

/// Two threads submit a task each and run what is in the queue.
struct Queueing {
  Queueing() {
    for (Counted* const task : {&first, &second}) {
      Explorer::current()->spawn([this, task] {
        task->fill();
        tasks.submit(*task);
        tasks.run(32);
      });
    }
  }
  void check() {
    const int left = 2 - ran.now();
    if (tasks.has_work() != (left != 0)) Explorer::current()->fail("has_work() is wrong");
    if (tasks.run(32) != left || ran.now() != 2) Explorer::current()->fail("a task did not run once");
  }
  ltask::TaskQueue tasks;
  Tally ran;
  Counted first{ran}, second{ran};
};

/// One thread takes the first of two tasks, the other checks whether there is work.
struct Looking {
  Looking() {
    for (Counted* const task : {&first, &second}) tasks.submit(*task);
    Explorer::current()->spawn([this] { tasks.run(1); });
    Explorer::current()->spawn([this] {
      if (!tasks.has_work()) Explorer::current()->fail("a task that no thread has taken is not seen");
    });
  }
  void check() {
    if (tasks.run(32) != 1 || ran.now() != 2) Explorer::current()->fail("a task did not run once");
  }
  ltask::TaskQueue tasks;
  Tally ran;
  Counted first{ran}, second{ran};
};

/// A task that wants to run so many times, or until it is cancelled.
struct Patient : ltask::Task {
  ltask::TaskQueue* queue = nullptr;
  int wanted = 0, calls = 0, cancelled_calls = 0;
  static void call(ltask::Task& base) {
    auto& task = static_cast<Patient&>(base);
    ++(task.is_cancelled() ? task.cancelled_calls : task.calls);
    if (task.cancelled_calls != 0 || task.calls == task.wanted) return task.finish();
    task.again();
    task.queue->submit(task);
  }
  Patient(ltask::TaskQueue& in, int times) : queue(&in), wanted(times) {
    make_steerable();
    function = call;
    if (!claim()) Explorer::current()->fail("a new task is not idle");
    in.submit(*this);
  }
};

/// One thread runs the task, one cancels it, one masks it for a moment.
template <int Calls, bool Cancelled, bool Masked>
struct Steering {
  Steering() {
    Explorer::current()->spawn([this] { queue.run(32); });
    if (Cancelled) Explorer::current()->spawn([this] { accepted = queue.cancel(task); });
    if (!Masked) return;
    Explorer::current()->spawn([this] {
      task.mask();
      if (task.unmask()) queue.submit(task);
    });
  }
  void check() {
    for (int turns = 0; queue.has_work() && turns < 8; ++turns) queue.run(32);
    if (queue.has_work() || task.state() != ltask::Task::idle) Explorer::current()->fail("the task has not ended");
    if (task.calls + task.cancelled_calls == 0 || task.cancelled_calls > 1) Explorer::current()->fail("wrong calls");
    if (!Cancelled && task.calls != Calls) Explorer::current()->fail("a task was not called as often as it wanted");
    if (task.cancelled_calls == 0 && task.calls != Calls) Explorer::current()->fail("it ended before its time");
    if (task.cancelled_calls != 0 && !accepted) Explorer::current()->fail("cancelled, though that was refused");
  }
  ltask::TaskQueue queue;
  Patient task{queue, Calls};
  bool accepted = false;
};

TEST(TaskQueueInEveryOrder, EndsATaskThatIsSteered) {
  in_every_order<Steering<2, true, false>>("TaskQueue, 1 that runs, 1 that cancels");
  in_every_order<Steering<2, false, true>>("TaskQueue, 1 that runs, 1 that masks and unmasks");
  in_every_order<Steering<1, true, true>>("TaskQueue, 1 that runs, 1 that cancels, 1 that masks and unmasks",
                                          a_few_old);
}

TEST(TaskQueueInEveryOrder, RunsEveryTaskOnceAndShowsThatThereAreSome) {
  in_every_order<Queueing>("TaskQueue, 2 that submit and run");
  in_every_order<Looking>("TaskQueue, 1 that runs, 1 that looks");
}

}  // namespace
}  // namespace canele::exhaustive
