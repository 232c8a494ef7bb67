// SPDX-License-Identifier: BSD-3-Clause
//
// Accesses to a target's memory that this process has mapped: copies and atomic operations of the calling thread.
//
// Used by window_access, window_accumulate and window_sync. Any thread. Such an access is over when its function
// returns. It may overtake operations that were posted to the engine before, which MPI allows for puts and gets. An
// atomic operation must not, so it goes this way only while none of them is pending for its target.
//
// Rejected: the same in the rank's own part, if it is the program's memory. The engine's threads write there, too, and
// combine elements under its lock.
#pragma once

#include <canele/one_sided.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace canele::mpi {

/// Copies bytes. A word is copied at once, without a call.
inline void copy_bytes(char* to, const char* from, std::size_t length) {
  if (length == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else {
    std::memcpy(to, from, length);
  }
}

inline void write_target(char* to, const char* from, std::size_t length) {
  std::atomic_thread_fence(std::memory_order_release);  // after earlier puts; a reader loads a later one with acquire
  copy_bytes(to, from, length);
}

inline void read_target(char* to, const char* from, std::size_t length) {
  copy_bytes(to, from, length);
  std::atomic_thread_fence(std::memory_order_acquire);  // before later gets
}

template <class Word>
Word apply_to_word(Word& memory, canele_atomic_operation operation, Word operand, Word compare) {
  const std::atomic_ref<Word> word(memory);
  switch (operation) {
    case CANELE_ATOMIC_SWAP:
      return word.exchange(operand);
    case CANELE_ATOMIC_ADD:
      return word.fetch_add(operand);
    case CANELE_ATOMIC_AND:
      return word.fetch_and(operand);
    case CANELE_ATOMIC_OR:
      return word.fetch_or(operand);
    case CANELE_ATOMIC_XOR:
      return word.fetch_xor(operand);
    case CANELE_ATOMIC_COMPARE_AND_SWAP:
      word.compare_exchange_strong(compare, operand);
      return compare;
    default:
      return word.load();
  }
}

/// Applies an operation to the aligned word of 4 or 8 bytes at `address`. Returns what it was before. Atomic with
/// respect to the engine's operations, which use the same instructions.
inline std::uint64_t apply_directly(void* address, canele_atomic_operation operation, std::size_t size,
                                    std::uint64_t operand, std::uint64_t compare) {
  if (size == sizeof(std::uint64_t))
    return apply_to_word(*static_cast<std::uint64_t*>(address), operation, operand, compare);
  return apply_to_word(*static_cast<std::uint32_t*>(address), operation, static_cast<std::uint32_t>(operand),
                       static_cast<std::uint32_t>(compare));
}

}  // namespace canele::mpi
