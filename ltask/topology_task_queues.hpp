// SPDX-License-Identifier: BSD-3-Clause
//
// TopologyTaskQueues: a queue of tasks for each object of the topology, so that a task runs where its data is.
//
// Used by the engine once a task has been submitted for a place; tasks for any place are in a separate queue. Any
// thread.
//
// No thread is sent to a place. A task waits there until a thread that makes progress happens to run there.
//
//   machine ─┬─ package 0 ─┬─ core 0 ─┬─ unit 0      a thread on unit 2 looks into the queues of unit 2, core 1,
//            │             │          └─ unit 1      package 0 and the machine, in this order
//            │             └─ core 1 ─┬─ unit 2
//            └─ package 1 …           └─ unit 3
//
// Rejected: one queue whose tasks have masks of units (a thread that looks for a task walks over those for other
// units).
// Rejected: a thread for each place (it has nothing to do most of the time, but exists and competes).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "ltask/task.hpp"
#include "ltask/topology.hpp"

namespace canele::ltask {

class TopologyTaskQueues {
 public:
  explicit TopologyTaskQueues(const Topology& topology);

  /// Returns the place of the object with this hwloc logical index, or nothing.
  std::optional<int> find(Topology::Kind kind, int index) const;

  /// Returns the queue of that object.
  TaskQueue& queue(int place) noexcept;

  /// Runs at most `limit` tasks of the objects around this unit (OS index), nearest first. Returns how many.
  int run(int unit, int limit) noexcept;
  /// Returns whether such a task may be waiting.
  bool has_work(int unit) const noexcept;

 private:
  struct Node {
    TaskQueue queue;
    Node* around = nullptr;
    Topology::Kind kind{};
    int index = 0;
  };
  Node* node_around(int unit) const noexcept;

  std::unique_ptr<Node[]> nodes_;
  std::size_t count_ = 0;
  std::vector<Node*> innermost_;  ///< by OS index of the unit
};

}  // namespace canele::ltask
