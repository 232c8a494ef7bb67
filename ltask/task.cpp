// SPDX-License-Identifier: BSD-3-Clause
//
// The task queue. See task.hpp for the picture. Threads: any.
// Surprise: ready_count_ is raised before incoming_ is emptied, so has_work() cannot miss a task that changes
//     lists.
#include "ltask/task.hpp"

namespace canele::ltask {

void TaskQueue::submit(Task& task) noexcept {
  [[maybe_unused]] const auto before = task.state.exchange(Task::State::ready, std::memory_order_relaxed);
  assert(before != Task::State::ready && "a task is submitted once at a time");
  assert(task.function != nullptr);
  Task* top = incoming_.load(std::memory_order_relaxed);
  do {
    task.next = top;
  } while (!incoming_.compare_exchange_weak(top, &task, std::memory_order_release, std::memory_order_relaxed));
}

Task* TaskQueue::take() noexcept {
  if (!has_work() || consumer_.exchange(true, std::memory_order_acquire)) return nullptr;
  if (head_ == nullptr) {
    ready_count_.store(1, std::memory_order_relaxed);  // covers the hand-over below
    std::uint32_t count = 0;
    Task* list = incoming_.exchange(nullptr, std::memory_order_acquire);
    tail_ = list;
    while (list != nullptr) {
      Task* next = list->next;
      list->next = head_;
      head_ = list;
      list = next;
      ++count;
    }
    ready_count_.store(count, std::memory_order_release);
  }
  Task* task = head_;
  if (task != nullptr) {
    head_ = task->next;
    ready_count_.store(ready_count_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  consumer_.store(false, std::memory_order_release);
  return task;
}

int TaskQueue::run(int limit) noexcept {
  int done = 0;
  while (done < limit) {
    Task* task = take();
    if (task == nullptr) break;
    task->next = nullptr;
    task->state.store(Task::State::running, std::memory_order_relaxed);
    task->function(*task);  // may free the task
    ++done;
  }
  return done;
}

}  // namespace canele::ltask
