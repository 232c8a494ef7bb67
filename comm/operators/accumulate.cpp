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
  for (std::size_t i = 0; i < length; i += sizeof(Word)) {
    const Word former = apply(how.operation, kernel, reinterpret_cast<Word*>(at + i), data + i);
    if (before != nullptr) std::memcpy(before + i, &former, sizeof former);
  }
}

/// Combines elements by words of their own size.
void combine_elements(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length,
                      std::byte* before) {
  const std::size_t size = size_of(how.element);
  if (size == sizeof(std::uint8_t)) return combine_as<std::uint8_t>(how, at, data, length, before);
  if (size == sizeof(std::uint16_t)) return combine_as<std::uint16_t>(how, at, data, length, before);
  if (size == sizeof(std::uint32_t)) return combine_as<std::uint32_t>(how, at, data, length, before);
  combine_as<std::uint64_t>(how, at, data, length, before);
}

using WideWord = std::uint64_t;
constexpr std::size_t most_words = 64;  ///< of a block

/// Applies an operator to a block of at most `most_words` wide words, from one look at all of them. A word that another
/// rank changes meanwhile is combined again from its new value.
void combine_block(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length,
                   std::byte* before) {
  const canele_combine_fn kernel = kernel_of(how);
  const std::size_t size = size_of(how.element), words = length / sizeof(WideWord);
  WideWord* const there = reinterpret_cast<WideWord*>(at);
  WideWord operands[most_words], former[most_words], after[most_words];
  std::memcpy(operands, data, length);
  for (std::size_t i = 0; i < words; ++i) {
    former[i] = std::atomic_ref<WideWord>(there[i]).load(std::memory_order_relaxed);
    after[i] = former[i];
  }
  kernel(operands, after, length / size, nullptr);
  for (std::size_t i = 0; i < words; ++i) {
    while (!std::atomic_ref<WideWord>(there[i]).compare_exchange_weak(former[i], after[i], std::memory_order_acq_rel,
                                                                      std::memory_order_relaxed)) {
      after[i] = former[i];
      kernel(&operands[i], &after[i], sizeof(WideWord) / size, nullptr);
    }
  }
  if (before != nullptr) std::memcpy(before, former, length);
}

/// Combines wide words, each of one or more elements.
void combine_wide(const Accumulation& how, std::byte* at, const std::byte* data, std::size_t length,
                  std::byte* before) {
  if (!has_kernel(how.operation)) return combine_as<WideWord>(how, at, data, length, before);
  for (std::size_t i = 0; i < length; i += most_words * sizeof(WideWord)) {
    const std::size_t bytes = std::min(most_words * sizeof(WideWord), length - i);
    combine_block(how, at + i, data + i, bytes, before != nullptr ? before + i : nullptr);
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
  assert(has_words(size_of(how.element), at) && length % size_of(how.element) == 0);
  if (how.operation == CANELE_NO_OP) data = at;  // is not read
  if (length <= sizeof(WideWord)) return combine_elements(how, at, data, length, before);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(at) % sizeof(WideWord);
  const std::size_t head = beyond == 0 ? 0 : sizeof(WideWord) - beyond,
                    wide = (length - head) / sizeof(WideWord) * sizeof(WideWord);
  const auto former_at = [before](std::size_t i) { return before != nullptr ? before + i : nullptr; };
  combine_elements(how, at, data, head, before);
  combine_wide(how, at + head, data + head, wide, former_at(head));
  const std::size_t done = head + wide;
  combine_elements(how, at + done, data + done, length - done, former_at(done));
}

}  // namespace canele::comm::operators
