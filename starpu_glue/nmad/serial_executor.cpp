// SPDX-License-Identifier: BSD-3-Clause
//
// The SerialExecutor of internal.hpp, for the ends of sends and multicasts. Called from any thread.
//
// A call may run the tasks of other threads, for as long as they add more.
#include "starpu_glue/nmad/internal.hpp"

namespace canele::nmad {

void SerialExecutor::deliver(SerialTask& task) {
  static SerialTask* const busy = reinterpret_cast<SerialTask*>(std::uintptr_t{1});
  SerialTask* head = head_.load(std::memory_order_relaxed);
  do {
    task.next = head;
  } while (!head_.compare_exchange_weak(head, head == nullptr ? busy : &task, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  if (head != nullptr) return;  // another thread delivers it
  task.run(task);
  for (;;) {
    SerialTask* expected = busy;
    if (head_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) return;
    SerialTask* newest = head_.exchange(busy, std::memory_order_acq_rel);
    SerialTask* oldest = nullptr;
    while (newest != busy) {  // reverses the list: the first task that came runs first
      SerialTask* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    while (oldest != nullptr) {
      SerialTask* following = oldest->next;
      oldest->run(*oldest);
      oldest = following;
    }
  }
}

}  // namespace canele::nmad
