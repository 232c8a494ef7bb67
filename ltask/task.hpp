// SPDX-License-Identifier: BSD-3-Clause
//
// ltask: a small unit of communication work, and the queue that it waits in.
//
// The engine submits tasks; threads that make progress (worker, waiter, hook) run them. Any thread.
//
// A task is embedded in the object that owns it, and runs exactly once per submission. The queue does not touch a task
// after calling its function. So the function may free the owner, or submit the task again. A cancelled task is called,
// too: its function sees is_cancelled(), and the memory belongs to its owner again.
//
//   submit ─▶ incoming (lock-free LIFO) ─reversed by the consumer─▶ ready (FIFO) ─▶ run, one task at a time
//
//             ┌──────── again ────────┐
//             ▼                       │
//   idle ─▶ ready ─▶ running ─finish─▶ idle        masked: not run; the thread that takes it out of the queue
//             │ ▲                                  leaves it deferred, and the one that unmasks it submits it again
//      masked ▼ │ unmask, cancel
//             deferred
//
// Rejected: one list under one lock (a submitter would wait for the poller).
// Rejected: a consumer that takes a whole batch (one long callback would hold up the rest of it).
// Rejected: removing a cancelled task from the queue at once (the cancelling thread would wait for a thread that is
// just taking a task out).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace canele::ltask {

struct Task {
  enum State : std::uint8_t { idle, ready, running, deferred, state_bits = 3 };
  /// Of steerable tasks only.
  enum Flag : std::uint8_t { steerable = 4, masked = 8, cancelled_flag = 16 };
  using Function = void (*)(Task&);

  Task* next = nullptr;
  Function function = nullptr;
  std::atomic<std::uint8_t> control{idle};
  std::uint32_t turn = 0;  ///< of a steerable task: turn of its last call since its submission

  State state() const noexcept { return static_cast<State>(control.load(std::memory_order_acquire) & state_bits); }

  /// Prepares the task for (another) submission.
  void prepare(Function f) noexcept {
    assert((control.load(std::memory_order_relaxed) & state_bits) != ready && "prepared while queued");
    function = f;
    control.store(idle, std::memory_order_relaxed);
  }

  // ---- steerable tasks: they may be cancelled and masked, by any thread ------------------------------------------

  /// Makes the task steerable. Call it once, before all else; zero bytes are an idle task.
  void make_steerable() noexcept { control.fetch_or(steerable, std::memory_order_relaxed); }
  /// Claims the task for a submission. Returns false if it is in use.
  bool claim() noexcept;
  /// Requests another submission of the task, cancelled or not. Called in its function, in place of submitting.
  void again() noexcept;
  /// Makes the task idle again. Called in its function; not needed if the function frees the task.
  void finish() noexcept;
  /// Prevents further calls until unmask(). A call that is under way goes on.
  void mask() noexcept { control.fetch_or(masked, std::memory_order_acq_rel); }
  /// Allows calls again. Returns true if the task was deferred: it is ready, and the caller must submit it.
  [[nodiscard]] bool unmask() noexcept;
  bool is_cancelled() const noexcept { return (control.load(std::memory_order_relaxed) & cancelled_flag) != 0; }

 private:
  friend class TaskQueue;
  bool is_steerable() const noexcept { return (control.load(std::memory_order_relaxed) & steerable) != 0; }
  bool begin() noexcept;
};

class TaskQueue {
 public:
  /// Submits a task. Never waits. The task must not be queued already; a steerable one must be claimed.
  void submit(Task& task) noexcept;

  /// Runs at most `limit` tasks and returns how many. A task that asks for another call is not called twice. Returns at
  /// once if another thread is just taking a task out.
  int run(int limit) noexcept;

  /// Returns whether a task may be waiting. Never false while a submitted task has not been taken out.
  bool has_work() const noexcept {
    return incoming_.load(std::memory_order_acquire) != nullptr || ready_count_.load(std::memory_order_acquire) != 0;
  }

  /// Cancels a steerable task of this queue. It is called once more, and sees is_cancelled(). That is at its turn, even
  /// if it is masked; or after the current call, if that call wants another one. Returns false if the task is idle.
  bool cancel(Task& task) noexcept;

  /// Makes the queue run one of the oldest few tasks next instead of the oldest. For tests. 0: off. Before any
  /// submission.
  void shuffle(std::uint64_t seed) noexcept { dice_ = seed; }

 private:
  Task* take() noexcept;
  void reverse_incoming() noexcept;
  Task* unlink_next() noexcept;

  alignas(64) std::atomic<Task*> incoming_{nullptr};
  alignas(64) std::atomic<bool> consumer_{false};  // guards head_ and dice_; held for a few instructions
  std::atomic<std::uint32_t> ready_count_{0};
  Task* head_ = nullptr;
  std::uint64_t dice_ = 0;
  std::atomic<std::uint32_t> turns_{0};  ///< calls of run() that have met steerable tasks
};

}  // namespace canele::ltask
