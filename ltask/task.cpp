// SPDX-License-Identifier: BSD-3-Clause
//
// The task queue. See the pictures in task.hpp.
//
// ready_count_ is raised before incoming_ is emptied, so has_work() cannot miss a task that moves between the lists.
#include "ltask/task.hpp"

namespace canele::ltask {
namespace {

constexpr std::uint8_t with_state(std::uint8_t control, Task::State state) {
  return static_cast<std::uint8_t>((control & ~Task::state_bits) | state);
}

/// Replaces the control by what `change` makes of it; returns the old value.
template <typename Change>
std::uint8_t change_word(std::atomic<std::uint8_t>& control, Change change) noexcept {
  std::uint8_t seen = control.load(std::memory_order_acquire);
  while (!control.compare_exchange_weak(seen, change(seen), std::memory_order_acq_rel, std::memory_order_acquire)) {
  }
  return seen;
}

}  // namespace

bool Task::claim() noexcept {
  const std::uint8_t before = change_word(control, [](std::uint8_t seen) {
    return (seen & state_bits) != idle ? seen : static_cast<std::uint8_t>(with_state(seen, ready) & ~cancelled_flag);
  });
  assert((before & steerable) != 0);
  if ((before & state_bits) != idle) return false;
  turn = 0;
  return true;
}

void Task::again() noexcept {
  [[maybe_unused]] const std::uint8_t before =
      change_word(control, [](std::uint8_t seen) { return with_state(seen, ready); });
  assert((before & state_bits) == running);
}

void Task::finish() noexcept {
  [[maybe_unused]] const std::uint8_t before = change_word(
      control, [](std::uint8_t seen) { return static_cast<std::uint8_t>(with_state(seen, idle) & ~cancelled_flag); });
  assert((before & state_bits) == running);
}

bool Task::unmask() noexcept {
  const std::uint8_t before = change_word(control, [](std::uint8_t seen) {
    const auto open = static_cast<std::uint8_t>(seen & ~masked);
    return (seen & state_bits) == deferred ? with_state(open, ready) : open;
  });
  return (before & state_bits) == deferred;
}

/// Begins a steerable task that the caller has taken out of the queue. Returns false if the task is masked, and is now
/// deferred.
bool Task::begin() noexcept {
  const auto decide = [](std::uint8_t seen) {
    return (seen & (masked | cancelled_flag)) == masked ? deferred : running;
  };
  const std::uint8_t before = change_word(control, [&](std::uint8_t seen) { return with_state(seen, decide(seen)); });
  assert((before & state_bits) == ready);
  return decide(before) == running;
}

void TaskQueue::submit(Task& task) noexcept {
  if (!task.is_steerable()) {
    [[maybe_unused]] const auto before = task.control.exchange(Task::ready, std::memory_order_relaxed);
    assert(before != Task::ready && "a task is submitted once at a time");
  } else {
    assert(task.state() == Task::ready && "claimed first");
  }
  assert(task.function != nullptr);
  Task* top = incoming_.load(std::memory_order_relaxed);
  do {
    task.next = top;
  } while (!incoming_.compare_exchange_weak(top, &task, std::memory_order_release, std::memory_order_relaxed));
}

bool TaskQueue::cancel(Task& task) noexcept {
  const std::uint8_t before = change_word(task.control, [](std::uint8_t seen) {
    if ((seen & Task::state_bits) == Task::idle) return seen;
    const auto flagged = static_cast<std::uint8_t>(seen | Task::cancelled_flag);
    return (seen & Task::state_bits) == Task::deferred ? with_state(flagged, Task::ready) : flagged;
  });
  if ((before & Task::state_bits) == Task::deferred) submit(task);
  return (before & Task::state_bits) != Task::idle;
}

/// Moves the incoming tasks to the ready list, which is empty. Called by the consumer.
void TaskQueue::reverse_incoming() noexcept {
  ready_count_.store(1, std::memory_order_relaxed);  // covers the hand-over below
  // acquire: pairs with submit(). release: pairs with has_work(), which must see the count if it finds this list empty.
  std::uint32_t count = 0;
  Task* list = incoming_.exchange(nullptr, std::memory_order_acq_rel);
  while (list != nullptr) {
    Task* next = list->next;
    list->next = head_;
    head_ = list;
    list = next;
    ++count;
  }
  ready_count_.store(count, std::memory_order_release);
}

/// Removes the first task, or one of the first few of a shuffled queue. Called by the consumer.
Task* TaskQueue::unlink_next() noexcept {
  Task** link = &head_;
  if (dice_ != 0) [[unlikely]] {
    constexpr std::uint64_t few = 8;
    dice_ = dice_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    for (std::uint64_t skip = (dice_ >> 33) % few; skip != 0 && (*link)->next != nullptr; --skip) link = &(*link)->next;
  }
  Task* const task = *link;
  *link = task->next;
  return task;
}

Task* TaskQueue::take() noexcept {
  if (!has_work() || consumer_.exchange(true, std::memory_order_acquire)) return nullptr;
  if (head_ == nullptr) reverse_incoming();
  Task* task = nullptr;
  if (head_ != nullptr) {
    task = unlink_next();
    ready_count_.store(ready_count_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  consumer_.store(false, std::memory_order_release);
  return task;
}

int TaskQueue::run(int limit) noexcept {
  int done = 0;
  std::uint32_t turn = 0;  // number of this call, once it matters
  while (done < limit) {
    Task* task = take();
    if (task == nullptr) break;
    task->next = nullptr;
    if (task->is_steerable()) {
      if (turn == 0) turn = turns_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (task->turn == turn) {  // it wants another call, and all others have had theirs
        submit(*task);
        break;
      }
      if (!task->begin()) continue;
      task->turn = turn;
    } else {
      task->control.store(Task::running, std::memory_order_relaxed);
    }
    task->function(*task);  // may free the task
    ++done;
  }
  return done;
}

}  // namespace canele::ltask
