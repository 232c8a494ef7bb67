// SPDX-License-Identifier: BSD-3-Clause
//
// ListedWaiter: a thread that waits for a completion queue or a completion counter, in the list of that object.
//
// The lock of the object guards the list. The thread waits for the word, as for a request.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/state/awaited.hpp"

namespace canele::comm {

struct ListedWaiter {
  static constexpr std::uint64_t woken_bit = 1;

  std::atomic<std::uint64_t> word{0};
  std::uint64_t threshold = 0;  ///< of a counter
  ListedWaiter* next = nullptr;

  Target target() { return {&word, woken_bit, nullptr}; }
  bool woken() const { return (word.load(std::memory_order_acquire) & woken_bit) != 0; }
  /// Ends the wait. From here on the waiter may be gone. Returns the parker to signal, or nullptr.
  ltask::Parker* wake() {
    // Release: pairs with woken(). Acquire: pairs with the store of the parker.
    return RequestWord::parker(word.fetch_or(woken_bit, std::memory_order_acq_rel));
  }
};

/// Takes the waiter out of a list. Returns false if it is not there: another thread has woken it.
inline bool unlist(ListedWaiter*& first, ListedWaiter& waiter) {
  for (ListedWaiter** at = &first; *at != nullptr; at = &(*at)->next) {
    if (*at != &waiter) continue;
    *at = waiter.next;
    return true;
  }
  return false;
}

}  // namespace canele::comm
