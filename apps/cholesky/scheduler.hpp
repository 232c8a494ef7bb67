// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler: compute threads take ready tasks, the most urgent first, until all tasks of this rank are done.
//
// Factorisation makes one for each run. Threads: run() is called in the main thread, available() and stop() in any
// thread and in callbacks of the library. They hold one lock for a short time. Time is divided as the compute threads
// see it: in a task, after a task (sending its result), and waiting for a task.
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
    std::function<void(const Task&)> compute;      ///< runs the task
    std::function<void(const Task&)> send_result;  ///< sends the result of a task that finished its tile
    std::function<void(int)> column_is_done;       ///< called when no task reads this column of the factor any more
  };

  Scheduler(Graph& graph, Work work) : graph_(graph), work_(std::move(work)) {}

  /// Runs all tasks of this rank. Returns an empty string, or the reason if a task has failed or stop() was called.
  std::string run(int threads);

  /// Records that a tile of the factor has arrived from another rank.
  void available(TileIndex factor);
  /// Ends run() after a failure. The first reason is kept.
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
