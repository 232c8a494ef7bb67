// SPDX-License-Identifier: BSD-3-Clause
//
// Strided memory: equal blocks, one stride apart. A put or get accesses it at the target.
//
// Used by protocol/ and post/. Any thread.
//
//     base ▼         ▼ + stride     ▼ + 2 × stride
//          [ block ]      [ block ]      [ block ]        extent: up to the end of the last block
#pragma once

#include <canele/canele.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

inline bool is_strided(const wire::Strides& strides) { return strides.block != 0; }

/// Returns whether blocks of this kind have `length` bytes together, and do not overlap.
inline bool is_shape_of(const wire::Strides& strides, std::uint64_t length) {
  return strides.block != 0 && strides.stride >= strides.block && length % strides.block == 0;
}

/// Returns the bytes from the first block to the end of the last one, for blocks of `length` bytes together. A sum
/// that does not fit is the largest number.
inline std::uint64_t extent_of(const wire::Strides& strides, std::uint64_t length) {
  if (!is_strided(strides) || length == 0) return length;
  const std::uint64_t before_last = length / strides.block - 1;
  std::uint64_t extent = 0;
  const bool fits = !__builtin_mul_overflow(before_last, std::uint64_t{strides.stride}, &extent) &&
                    !__builtin_add_overflow(extent, std::uint64_t{strides.block}, &extent);
  return fits ? extent : std::numeric_limits<std::uint64_t>::max();
}

/// Memory of `length` bytes, in one piece or strided. The context of a description of data.
struct StridedMemory {
  std::byte* base = nullptr;
  wire::Strides strides{};
  std::uint64_t length = 0;

  /// Calls one(address, offset in the data, bytes) for each block, or for the one piece.
  template <typename One>
  void each(One one) const {
    const std::uint64_t block = is_strided(strides) ? strides.block : length;
    std::byte* at = base;
    for (std::uint64_t done = 0; done < length; done += block, at += strides.stride) one(at, done, block);
  }
  void write(const std::byte* from) const {
    each([from](std::byte* at, std::uint64_t offset, std::size_t bytes) { std::memcpy(at, from + offset, bytes); });
  }
  void read(std::byte* to) const {
    each([to](std::byte* at, std::uint64_t offset, std::size_t bytes) { std::memcpy(to + offset, at, bytes); });
  }
};

/// Lists the blocks from `offset` on. A canele_segments_fn.
int strided_segments(const void* context, std::size_t offset, iovec* out, int max);

/// Describes the memory. `memory` must live as long as the description.
inline canele_data_t data_of(const StridedMemory& memory) {
  return is_strided(memory.strides) ? canele_data_segments(strided_segments, &memory, memory.length)
                                    : canele_data_contiguous(memory.base, memory.length);
}

}  // namespace canele::comm::one_sided
