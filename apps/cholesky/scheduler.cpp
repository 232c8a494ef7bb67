// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler.
//
// The result of a task is sent before its local successors are queued, because other ranks wait longer for it.
#include "scheduler.hpp"

#include <chrono>
#include <exception>
#include <thread>

namespace canele::cholesky {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds the seconds of its lifetime to `total`, which belongs to one thread.
class Span {
 public:
  explicit Span(double* total) : total_(total), start_(Clock::now()) {}
  Span(const Span&) = delete;
  ~Span() { *total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double* const total_;
  const Clock::time_point start_;
};

}  // namespace

std::string Scheduler::run(int threads) {
  {
    std::vector<Task> ready;
    const std::lock_guard lock(mutex_);
    graph_.start(ready);
    queue(ready);
  }
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([this] { work(); });
  work();
  for (std::thread& other : others) other.join();
  return problem_;
}

void Scheduler::work() {
  Times own;
  std::unique_lock lock(mutex_);
  while (true) {
    Task task{};
    {
      const Span wait(&own.wait);
      if (!next(lock, &task)) break;
    }
    lock.unlock();
    try {
      {
        const Span compute(&own.compute);
        work_.compute(task);
      }
      const Span communicate(&own.communicate);
      if (task.finishes()) work_.send_result(task);
    } catch (const std::exception& problem) {
      stop(problem.what());
    }
    book(task);
    lock.lock();
  }
  times_.compute += own.compute;
  times_.communicate += own.communicate;
  times_.wait += own.wait;
}

/// Takes the next task. Returns false if nothing is left to do.
bool Scheduler::next(std::unique_lock<std::mutex>& lock, Task* task) {
  changed_.wait(lock, [this] { return !ready_.empty() || graph_.done() || !problem_.empty(); });
  if (graph_.done() || !problem_.empty()) return false;
  *task = ready_.top();
  ready_.pop();
  return true;
}

/// Records a task that has run.
void Scheduler::book(const Task& task) {
  bool column_is_done = false;
  {
    std::vector<Task> ready;
    const std::lock_guard lock(mutex_);
    graph_.finished(task, ready);
    column_is_done = graph_.column_is_done(task.step);
    queue(ready);
  }
  if (column_is_done) work_.column_is_done(task.step);
}

void Scheduler::available(TileIndex factor) {
  std::vector<Task> ready;
  const std::lock_guard lock(mutex_);
  graph_.available(factor, ready);
  queue(ready);
}

void Scheduler::stop(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = reason;
  changed_.notify_all();
}

/// Queues ready tasks. Called under the lock.
void Scheduler::queue(const std::vector<Task>& ready) {
  for (const Task& task : ready) ready_.push(task);
  if (ready.size() > 1 || graph_.done()) {
    changed_.notify_all();
  } else if (!ready.empty()) {
    changed_.notify_one();
  }
}

}  // namespace canele::cholesky
