// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler: compute threads that take ready tasks, the most urgent first, until this rank's are done.
//
// Who: Factorisation makes one for each run. Threads: run() in the main thread; at_hand() and stop() in any, also in
//     callbacks of the library: they take one lock, shortly.
// Surprise: time is split as the compute threads see it: in a task, after a task (handing on what it has made), and
//     waiting for one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "graph.hpp"

namespace canele::cholesky {

/// Seconds, summed over threads.
struct Times {
  double compute = 0, communicate = 0, wait = 0;
};

class Scheduler {
 public:
  struct Work {
    std::function<void(const Task&)> compute;  ///< runs the task
    std::function<void(const Task&)> hand_on;  ///< of a task that finished its tile: sends that
    std::function<void(int)> column_is_done;   ///< no task reads this column of the factor any more
  };

  Scheduler(Graph& graph, Work work) : graph_(graph), work_(std::move(work)) {}

  /// Returns when all tasks of this rank have run, or one has failed: then with the reason, else empty.
  std::string run(int threads);

  /// A tile of the factor has come from another rank.
  void at_hand(TileIndex factor);
  /// Ends run(): nothing good can come of it. The first reason counts.
  void stop(const std::string& reason);

  Times times() const { return times_; }

 private:
  void work();
  bool next(std::unique_lock<std::mutex>& lock, Task* task);
  void queue(const std::vector<Task>& ready);
  void book(const Task& task);

  Graph& graph_;
  const Work work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ReadyTasks ready_;
  std::string problem_;
  Times times_;
};

}  // namespace canele::cholesky
