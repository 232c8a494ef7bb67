// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations on a word of registered memory, by the thread that executes them.
//
// Any thread: atomic with respect to all other threads and processes that map the memory.
#pragma once

#include <canele/one_sided.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace canele::comm::one_sided {

struct AtomicOperation {
  canele_atomic_operation kind;
  std::size_t size;  ///< 4 or 8 bytes
  std::uint64_t operand, compare;
};

template <typename Word>
std::uint64_t apply(const AtomicOperation& operation, Word* at) {
  const std::atomic_ref<Word> word(*at);
  const auto operand = static_cast<Word>(operation.operand);
  switch (operation.kind) {
    case CANELE_ATOMIC_SWAP:
      return word.exchange(operand, std::memory_order_acq_rel);
    case CANELE_ATOMIC_ADD:
      return word.fetch_add(operand, std::memory_order_acq_rel);
    case CANELE_ATOMIC_AND:
      return word.fetch_and(operand, std::memory_order_acq_rel);
    case CANELE_ATOMIC_OR:
      return word.fetch_or(operand, std::memory_order_acq_rel);
    case CANELE_ATOMIC_XOR:
      return word.fetch_xor(operand, std::memory_order_acq_rel);
    case CANELE_ATOMIC_COMPARE_AND_SWAP: {
      auto expected = static_cast<Word>(operation.compare);
      word.compare_exchange_strong(expected, operand, std::memory_order_acq_rel);
      return expected;
    }
    default:
      return word.load(std::memory_order_acquire);
  }
}

/// Applies the operation to the word at `at`, which is aligned to its size. Returns the value that the word had.
inline std::uint64_t apply(const AtomicOperation& operation, std::byte* at) {
  return operation.size == sizeof(std::uint32_t) ? apply(operation, reinterpret_cast<std::uint32_t*>(at))
                                                 : apply(operation, reinterpret_cast<std::uint64_t*>(at));
}

}  // namespace canele::comm::one_sided
