// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates: the two ways to combine an element atomically.
#include "comm/operators/accumulate.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <complex>
#include <cstring>

#include "comm/operators/operators.hpp"

namespace canele::comm::operators {
namespace {

bool has_kernel(int operation) { return operation < operator_count; }

canele_combine_fn kernel_of(const Accumulation& how) {
  return operators::kernel_of(static_cast<canele_operation>(how.operation), how.element);
}

/// Combines one element, given as the bytes of a word.
template <typename Word>
Word combined(canele_combine_fn kernel, const std::byte* data, Word before) {
  alignas(Word) std::byte in[sizeof(Word)], inout[sizeof(Word)];
  std::memcpy(in, data, sizeof(Word));
  std::memcpy(inout, &before, sizeof(Word));
  kernel(in, inout, 1, nullptr);
  Word after;
  std::memcpy(&after, inout, sizeof(Word));
  return after;
}

/// Applies the operation to one word. Returns the former one.
template <typename Word>
Word apply(int operation, canele_combine_fn kernel, Word* at, const std::byte* data) {
  const std::atomic_ref<Word> word(*at);
  if (operation == CANELE_NO_OP) return word.load(std::memory_order_acquire);
  if (operation == CANELE_REPLACE) {
    Word operand;
    std::memcpy(&operand, data, sizeof operand);
    return word.exchange(operand, std::memory_order_acq_rel);
  }
  Word before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, combined(kernel, data, before), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
  }
  return before;
}

template <typename Word>
void combine_as(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length, std::byte* before) {
  const canele_combine_fn kernel = has_kernel(how.operation) ? kernel_of(how) : nullptr;
  if (how.operation == CANELE_NO_OP) data = at;  // is not read
  for (std::size_t i = 0; i < length; i += sizeof(Word)) {
    const Word former = apply(how.operation, kernel, reinterpret_cast<Word*>(at + i), data + i);
    if (before != nullptr) std::memcpy(before + i, &former, sizeof former);
  }
}

}  // namespace

bool accumulates(int operation, unsigned element) {
  if (element >= element_count) return false;
  if (operation == CANELE_REPLACE || operation == CANELE_NO_OP) return true;
  if (operation < 0 || !has_kernel(operation)) return false;
  return kernel_of({operation, static_cast<canele_element>(element)}) != nullptr;
}

std::size_t alignment_of(canele_element element) {
  switch (element) {
    case CANELE_COMPLEX_FLOAT:
      return alignof(std::complex<float>);
    case CANELE_COMPLEX_DOUBLE:
      return alignof(std::complex<double>);
    case CANELE_INT16_INT:
    case CANELE_INT32_INT:
    case CANELE_FLOAT_INT:
      return alignof(int);
    case CANELE_INT64_INT:
      return alignof(std::int64_t);
    case CANELE_DOUBLE_INT:
      return alignof(double);
    case CANELE_COMPLEX_LONG_DOUBLE:
    case CANELE_LONG_DOUBLE_INT:
      return alignof(long double);
    default:
      return size_of(element);  // numbers
  }
}

void combine(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length, std::byte* before) {
  if (length == 0) return;
  if (before != nullptr) std::memcpy(before, at, length);
  if (how.operation == CANELE_NO_OP) return;
  if (how.operation == CANELE_REPLACE) return static_cast<void>(std::memcpy(at, data, length));
  alignas(64) std::byte block[2048];
  const std::size_t size = size_of(how.element);
  assert(length % size == 0 && sizeof block % size == 0);
  for (std::size_t i = 0; i < length; i += sizeof block) {
    const std::size_t bytes = std::min(sizeof block, length - i);
    std::memcpy(block, data + i, bytes);
    kernel_of(how)(block, at + i, bytes / size, nullptr);
  }
}

void combine_words(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length,
                   std::byte* before) {
  const std::size_t size = size_of(how.element);
  assert(has_words(size, at) && length % size == 0);
  if (size == sizeof(std::uint8_t)) return combine_as<std::uint8_t>(how, at, data, length, before);
  if (size == sizeof(std::uint16_t)) return combine_as<std::uint16_t>(how, at, data, length, before);
  if (size == sizeof(std::uint32_t)) return combine_as<std::uint32_t>(how, at, data, length, before);
  combine_as<std::uint64_t>(how, at, data, length, before);
}

}  // namespace canele::comm::operators
