// SPDX-License-Identifier: BSD-3-Clause
//
// The turnstile of internal.hpp, for the ends of sends and multicasts. Called from any thread.
//
// A call may deliver the turns of other threads, for as long as they add more.
#include "starpu_glue/nmad/internal.hpp"

namespace canele::nmad {

void Turnstile::deliver(Turn& turn) {
  static Turn* const busy = reinterpret_cast<Turn*>(std::uintptr_t{1});
  Turn* head = head_.load(std::memory_order_relaxed);
  do {
    turn.next = head;
  } while (!head_.compare_exchange_weak(head, head == nullptr ? busy : &turn, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  if (head != nullptr) return;  // another thread delivers it
  turn.tell(turn);
  for (;;) {
    Turn* expected = busy;
    if (head_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) return;
    Turn* newest = head_.exchange(busy, std::memory_order_acq_rel);
    Turn* oldest = nullptr;
    while (newest != busy) {  // reverses the list: the first turn that came is delivered first
      Turn* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    while (oldest != nullptr) {
      Turn* following = oldest->next;
      oldest->tell(*oldest);
      oldest = following;
    }
  }
}

}  // namespace canele::nmad
