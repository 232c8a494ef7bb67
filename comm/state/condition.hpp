// SPDX-License-Identifier: BSD-3-Clause
//
// Condition: what a canele_condition_t holds. Sixteen bits of the program, and the thread that waits for one of them.
//
// Any thread. A thread that sees a bit may free the condition, so signal() does not access it after its one store.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>

#include "comm/state/request.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {

struct Condition {
  std::atomic<std::uint64_t> word;  ///< the bits, and the waiter's parker above them

  void signal(std::uint16_t mask) {
    // Release: pairs with the acquire load in test(). Acquire: pairs with the store of the parker.
    const std::uint64_t before = word.fetch_or(mask, std::memory_order_acq_rel);
    // from here on the condition may be freed
    if (ltask::Parker* const parker = RequestWord::parker(before); parker != nullptr) parker->signal(posix_platform());
  }
  std::uint16_t test(std::uint16_t mask) const {
    return static_cast<std::uint16_t>(word.load(std::memory_order_acquire) & mask);
  }
};
static_assert(sizeof(Condition) <= sizeof(canele_condition_t));
static_assert(RequestWord::parker_shift == 16);

}  // namespace canele::comm
