// SPDX-License-Identifier: BSD-3-Clause
//
// ltask: a small unit of communication work, and the queue it waits in.
//
// Who: the engine submits; whoever makes progress (worker, waiter, hook) runs.
// Threads: any.
// Surprise: a task is embedded in the object that owns it and runs exactly once per submission; after its function
//     has been called the queue never touches it again, so the function may free its owner or submit the task anew.
//     So a task that is cancelled is called, too: its function sees is_cancelled(), and the memory is its owner's
//     again.
//
//   submit ─▶ incoming (lock-free LIFO) ─reversed by the consumer─▶ ready (FIFO) ─▶ run, one task at a time
//
//             ┌──────── again ────────┐
//             ▼                       │
//   idle ─▶ ready ─▶ running ─finish─▶ idle        masked: not run; who takes it out of the queue leaves it held,
//             │ ▲                                  and who unmasks it submits it again
//      masked ▼ │ unmask, cancel
//             held
//
// Rejected: one list under one lock (a submitter would wait for the poller); a consumer that takes a whole batch
//     (one long callback would hold up the rest of it); to take a cancelled task out of the queue at once (who cancels
//     would wait for who is just taking one out).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace canele::ltask {

struct Task {
  enum State : std::uint8_t { idle, ready, running, held, state_bits = 3 };
  /// Of steerable tasks only.
  enum Flag : std::uint8_t { steerable = 4, masked = 8, cancelled_flag = 16 };
  using Function = void (*)(Task&);

  Task* next = nullptr;
  Function function = nullptr;
  std::atomic<std::uint8_t> control{idle};
  std::uint32_t turn = 0;  ///< of a steerable task: when it was called last since its submission

  State state() const noexcept { return static_cast<State>(control.load(std::memory_order_acquire) & state_bits); }

  /// Prepares the task for (another) submission.
  void prepare(Function f) noexcept {
    assert((control.load(std::memory_order_relaxed) & state_bits) != ready && "prepared while queued");
    function = f;
    control.store(idle, std::memory_order_relaxed);
  }

  // ---- steerable tasks: they may be cancelled and masked, by any thread ------------------------------------------

  /// Once before all else; zero bytes are an idle task.
  void make_steerable() noexcept { control.fetch_or(steerable, std::memory_order_relaxed); }
  /// Before each submission. False: it is in use.
  bool claim() noexcept;
  /// In its function, instead of a submission: it is to be submitted again, cancelled or not.
  void again() noexcept;
  /// In its function: it is idle again. Not needed by a function that frees it.
  void finish() noexcept;
  /// From now on it is not begun, until unmask(). A call that is under way goes on.
  void mask() noexcept { control.fetch_or(masked, std::memory_order_acq_rel); }
  /// True: it was held; it is ready, and the caller must submit it.
  [[nodiscard]] bool unmask() noexcept;
  bool is_cancelled() const noexcept { return (control.load(std::memory_order_relaxed) & cancelled_flag) != 0; }

 private:
  friend class TaskQueue;
  bool is_steerable() const noexcept { return (control.load(std::memory_order_relaxed) & steerable) != 0; }
  bool begin() noexcept;
};

class TaskQueue {
 public:
  /// Never waits. The task must not be queued already; a steerable one has been claimed.
  void submit(Task& task) noexcept;

  /// Runs at most `limit` tasks, none that asks for it again and again twice; returns how many. Leaves at once if
  /// another thread is just taking one out.
  int run(int limit) noexcept;

  /// A task may be waiting. Never false while a submitted task has not been taken.
  bool has_work() const noexcept {
    return incoming_.load(std::memory_order_acquire) != nullptr || ready_count_.load(std::memory_order_acquire) != 0;
  }

  /// The steerable task, which is one of this queue, is called once more, and sees is_cancelled(): at its turn, also if
  /// it is masked, or after the call that is under way, if that wants it to run again. False: it is idle.
  bool cancel(Task& task) noexcept;

  /// From now on one of the oldest few is run next, and not the oldest: for tests. 0: no more. Before any submission.
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
