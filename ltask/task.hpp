// SPDX-License-Identifier: BSD-3-Clause
//
// ltask: a small unit of communication work, and the queue it waits in.
//
// Who: the engine submits; whoever makes progress (worker, waiter, hook) runs.
// Threads: any.
// Surprise: a task is embedded in the object that owns it and runs exactly once per submission; after its function
//     has been called the queue never touches it again, so the function may free its owner or submit the task anew.
//
//   submit ─▶ incoming (lock-free LIFO) ─reversed by the consumer─▶ ready (FIFO) ─▶ run, one task at a time
//
// Rejected: one list under one lock (a submitter would wait for the poller); a consumer that takes a whole batch
//     (one long callback would hold up the rest of it).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace canele::ltask {

struct Task {
  enum class State : std::uint8_t { idle, ready, running };
  using Function = void (*)(Task&);

  Task* next = nullptr;
  Function function = nullptr;
  std::atomic<State> state{State::idle};

  /// Prepares the task for (another) submission.
  void prepare(Function f) noexcept {
    assert(state.load(std::memory_order_relaxed) != State::ready && "prepared while queued");
    function = f;
    state.store(State::idle, std::memory_order_relaxed);
  }
};

class TaskQueue {
 public:
  /// Never waits. The task must not be queued already.
  void submit(Task& task) noexcept;

  /// Runs at most `limit` tasks; returns how many. Leaves at once if another thread is just taking one out.
  int run(int limit) noexcept;

  /// A task may be waiting. Never false while a submitted task has not been taken.
  bool has_work() const noexcept {
    return incoming_.load(std::memory_order_acquire) != nullptr || ready_count_.load(std::memory_order_acquire) != 0;
  }

 private:
  Task* take() noexcept;

  alignas(64) std::atomic<Task*> incoming_{nullptr};
  alignas(64) std::atomic<bool> consumer_{false};  // guards head_ and tail_; held for a few instructions
  std::atomic<std::uint32_t> ready_count_{0};
  Task* head_ = nullptr;
  Task* tail_ = nullptr;
};

}  // namespace canele::ltask
