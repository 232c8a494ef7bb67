// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates: elements that are combined into memory which several ranks access.
//
// An element is atomic in one of two ways, and every rank finds the same one for the same memory:
//
//   by words           atomic operations of the processor, by any process that maps the memory
//   one at a time      plain code, by the library of the target only, under its engine's lock
//
// Any thread may call these functions; they have no state. combine() needs the lock.
#pragma once

#include <canele/one_sided.h>

#include <cstddef>
#include <cstdint>

namespace canele::comm::operators {

/// How the elements are combined.
struct Accumulation {
  int operation;  ///< enum canele_operation or canele_accumulate_operation
  canele_element element;
};

/// Returns whether there is such an operation of such elements. Both values may be any number.
bool accumulates(int operation, unsigned element);
/// Returns the alignment that an element needs, in bytes.
std::size_t alignment_of(canele_element element);

/// Returns whether elements at this address can be combined by words.
inline bool has_words(std::size_t element_size, const std::byte* at) {
  return element_size <= sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(at) % element_size == 0;
}

/// Combines `length` bytes of elements into memory at `at`. `data` need not be aligned, and is not read by an operation
/// that only reads. `before` gets the former elements; nullptr: they are not wanted.
void combine(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length, std::byte* before);
/// The same by words. has_words() must be true. Small elements are combined several at a time, in words of 8 bytes of
/// which all are theirs: processors keep atomic operations of different sizes on one word apart.
void combine_words(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length,
                   std::byte* before);

}  // namespace canele::comm::operators
