// SPDX-License-Identifier: BSD-3-Clause
//
// Tasks that are cancelled, masked, run again, shuffled, and those of the topology's queues. One thread.
//
// tests/exhaustive/schedules tests a task that several threads use.
#include "ltask/task.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ltask/topology.hpp"
#include "ltask/topology_task_queues.hpp"

namespace canele::ltask {
namespace {

/// Appends its name when it is called, a small letter if it was cancelled; asks to be called `times` times.
struct Named : Task {
  TaskQueue* queue = nullptr;
  std::string* log = nullptr;
  char name = '?';
  int times = 1;

  static void call(Task& base) {
    auto& task = static_cast<Named&>(base);
    task.log->push_back(static_cast<char>(task.is_cancelled() ? task.name - 'A' + 'a' : task.name));
    if (--task.times == 0 || task.is_cancelled()) return task.finish();
    task.again();
    task.queue->submit(task);
  }

  void start(TaskQueue& in, std::string& into, char called, int calls = 1) {
    make_steerable();
    function = call;
    queue = &in;
    log = &into;
    name = called;
    times = calls;
    ASSERT_TRUE(claim());
    in.submit(*this);
  }
};

class SteeredTask : public testing::Test {
 protected:
  TaskQueue queue_;
  std::string log_;
  Named a_, b_, c_;
};

TEST_F(SteeredTask, RunsAgainButOnceInATurn) {
  a_.start(queue_, log_, 'A', 3);
  b_.start(queue_, log_, 'B', 2);
  c_.start(queue_, log_, 'C');
  EXPECT_EQ(queue_.run(32), 3);
  EXPECT_EQ(log_, "ABC");
  EXPECT_TRUE(queue_.has_work());
  EXPECT_EQ(queue_.run(32), 2);
  EXPECT_EQ(log_, "ABCBA") << "the task that has closed the round is last in the next one";
  EXPECT_EQ(queue_.run(32), 1);
  EXPECT_EQ(queue_.run(32), 0);
  EXPECT_EQ(log_, "ABCBAA");
  EXPECT_EQ(a_.state(), Task::idle);
  EXPECT_FALSE(queue_.has_work());
}

TEST_F(SteeredTask, IsNotClaimedTwice) {
  a_.start(queue_, log_, 'A');
  EXPECT_FALSE(a_.claim());
  queue_.run(1);
  EXPECT_TRUE(a_.claim());
}

TEST_F(SteeredTask, ACancelledOneIsCalledOnceMore) {
  a_.start(queue_, log_, 'A', 5);
  b_.start(queue_, log_, 'B');
  EXPECT_TRUE(queue_.cancel(a_));
  EXPECT_TRUE(queue_.cancel(a_)) << "it is still in use";
  queue_.run(32);
  EXPECT_EQ(log_, "aB");
  EXPECT_FALSE(queue_.cancel(a_)) << "it has ended";
  a_.start(queue_, log_, 'A');
  queue_.run(32);
  EXPECT_EQ(log_, "aBA") << "a new submission is not cancelled";
}

TEST_F(SteeredTask, AMaskedOneIsDeferredUntilItIsUnmasked) {
  a_.start(queue_, log_, 'A', 2);
  a_.mask();
  b_.start(queue_, log_, 'B');
  EXPECT_EQ(queue_.run(32), 1);
  EXPECT_EQ(log_, "B");
  EXPECT_EQ(a_.state(), Task::deferred);
  EXPECT_FALSE(queue_.has_work()) << "no thread stays awake for it";
  ASSERT_TRUE(a_.unmask());
  queue_.submit(a_);
  queue_.run(1);
  EXPECT_EQ(log_, "BA");
  a_.mask();
  EXPECT_FALSE(a_.unmask()) << "it has not been deferred: it is in the queue";
  queue_.run(1);
  EXPECT_EQ(log_, "BAA");
}

TEST_F(SteeredTask, AMaskedOneMayBeCancelled) {
  a_.make_steerable();
  a_.mask();
  a_.start(queue_, log_, 'A');
  EXPECT_EQ(queue_.run(32), 0);
  EXPECT_TRUE(queue_.cancel(a_));
  EXPECT_EQ(queue_.run(32), 1);
  EXPECT_EQ(log_, "a");
  EXPECT_FALSE(a_.unmask());
}

TEST(ShuffledQueue, RunsAllOnceInTheOrderOfItsSeed) {
  const auto order = [](std::uint64_t seed) {
    TaskQueue queue;
    std::string log;
    std::array<Named, 20> tasks;
    queue.shuffle(seed);
    char name = 'A';
    for (Named& task : tasks) task.start(queue, log, name++);
    EXPECT_EQ(queue.run(100), 20);
    return log;
  };
  const std::string first = order(1), plain = order(0);
  EXPECT_EQ(plain, "ABCDEFGHIJKLMNOPQRST");
  EXPECT_EQ(order(1), first);
  EXPECT_NE(first, plain);
  EXPECT_NE(order(2), first);
  std::string sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, plain);
}

/// Two packages of two cores of two units, OS indexes 0 to 7.
class PlacedTask : public testing::Test {
 protected:
  void put(Named& task, Topology::Kind kind, int index, char name) {
    const auto place = queues_.find(kind, index);
    ASSERT_TRUE(place.has_value());
    task.start(queues_.queue(*place), log_, name);
  }

  const Topology topology_{"pack:2 core:2 pu:2", std::vector<int>{}};
  TopologyTaskQueues queues_{topology_};
  std::string log_;
  Named a_, b_, c_, d_;
};

TEST_F(PlacedTask, RunsWhereItBelongs) {
  put(a_, Topology::Kind::unit, 2, 'A');
  EXPECT_FALSE(queues_.has_work(3));
  EXPECT_EQ(queues_.run(3, 32), 0);
  EXPECT_TRUE(queues_.has_work(2));
  EXPECT_EQ(queues_.run(2, 32), 1);
  put(a_, Topology::Kind::core, 1, 'B');
  EXPECT_EQ(queues_.run(1, 32), 0);
  EXPECT_EQ(queues_.run(3, 32), 1);
  put(a_, Topology::Kind::package, 1, 'C');
  EXPECT_EQ(queues_.run(3, 32), 0);
  EXPECT_EQ(queues_.run(7, 32), 1);
  put(a_, Topology::Kind::machine, 0, 'D');
  EXPECT_EQ(queues_.run(99, 32), 1) << "an unknown unit has the machine around it";
  EXPECT_EQ(log_, "ABCD");
}

TEST_F(PlacedTask, TheNearestIsRunFirst) {
  put(a_, Topology::Kind::machine, 0, 'A');
  put(b_, Topology::Kind::package, 0, 'B');
  put(c_, Topology::Kind::core, 0, 'C');
  put(d_, Topology::Kind::unit, 1, 'D');
  EXPECT_EQ(queues_.run(1, 3), 3);
  EXPECT_EQ(log_, "DCB");
  EXPECT_EQ(queues_.run(1, 3), 1);
}

TEST_F(PlacedTask, OnlyObjectsThatThereAreAreFound) {
  EXPECT_EQ(queues_.find(Topology::Kind::unit, 8), std::nullopt);
  EXPECT_EQ(queues_.find(Topology::Kind::core, -1), std::nullopt);
  EXPECT_TRUE(queues_.find(Topology::Kind::numa_node, 0).has_value());
}

TEST(TopologyObjects, EachLiesInTheSmallestAroundIt) {
  const Topology topology("numa:2 pack:1 core:2 pu:1", std::vector<int>{});
  const std::vector<Topology::Object> objects = topology.objects();
  ASSERT_FALSE(objects.empty());
  EXPECT_EQ(objects[0].within, -1);
  for (std::size_t i = 1; i < objects.size(); ++i) {
    ASSERT_GE(objects[i].within, 0);
    ASSERT_LT(objects[i].within, static_cast<int>(i));
    for (const int unit : objects[i].units) {
      const auto& around = objects[static_cast<std::size_t>(objects[i].within)].units;
      EXPECT_NE(std::find(around.begin(), around.end(), unit), around.end());
    }
  }
}

}  // namespace
}  // namespace canele::ltask
