// SPDX-License-Identifier: BSD-3-Clause
//
// Data: reading and writing the user's memory, described by canele_data_t, by position in the message.
//
// Who: protocol/ and api/.
// Threads: any.
// Surprise: a user's description is not trusted: a callback that returns nothing, or more than was asked for, ends
//     the copy instead of running on.
#pragma once

#include <canele/canele.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace canele::comm::data {

/// Up to `max` pieces that hold bytes [offset, offset + size) or the front of them; *covered = how many bytes that is.
inline int pieces(const canele_data_t& d, std::size_t offset, std::size_t size, iovec* out, int max,
                  std::size_t* covered) {
  *covered = 0;
  if (size == 0 || offset >= d.length) return 0;
  size = std::min(size, d.length - offset);
  if (d.segments == nullptr) {
    out[0] = {static_cast<std::byte*>(d.base) + offset, size};
    *covered = size;
    return 1;
  }
  const int n = std::clamp(d.segments(d.context, offset, out, max), 0, max);
  int used = 0;
  for (int i = 0; i < n && *covered < size; ++i) {
    out[i].iov_len = std::min(out[i].iov_len, size - *covered);
    *covered += out[i].iov_len;
    used = i + 1;
  }
  return used;
}

/// visit(memory, length) for each piece of [offset, offset + size), in order; returns the bytes visited.
template <typename Visit>
std::size_t each_piece(const canele_data_t& d, std::size_t offset, std::size_t size, Visit visit) {
  std::size_t done = 0;
  while (done < size) {
    iovec v[32];
    std::size_t covered = 0;
    const int n = pieces(d, offset + done, size - done, v, 32, &covered);
    if (covered == 0) break;
    for (int i = 0; i < n; ++i) visit(v[i].iov_base, v[i].iov_len);
    done += covered;
  }
  return done;
}

/// memcpy of what comes from another core, or goes there. Between 2 and 4 KiB in two steps: above 2 KiB the C library
/// takes `rep movs`, whose start costs more than it saves up to 5 KiB (3 KiB one way: 0.28 -> 0.23 us).
inline void copy_across(std::byte* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t step = 2048;
  assert(to != nullptr);
  if (to == nullptr) __builtin_unreachable();  // or GCC warns of late receives, which never come here
  if (size > step && size <= 2 * step) {
    std::memcpy(to, from, step);
    to += step, from += step, size -= step;
  }
  std::memcpy(to, from, size);
}

/// Moves of sixteen; the last may overlap.
inline void copy_by_sixteen(std::byte* to, const std::byte* from, std::size_t size) {
  struct Sixteen {
    std::uint64_t words[2];
  };
  const auto move = [&](std::size_t at) {
    Sixteen some;
    std::memcpy(&some, from + at, sizeof some);
    std::memcpy(to + at, &some, sizeof some);
  };
  for (std::size_t at = 0; at + sizeof(Sixteen) < size; at += sizeof(Sixteen)) move(at);
  move(size - sizeof(Sixteen));
}

/// memcpy, from 8 to 256 bytes in line: on the way of a message a call costs more (64 bytes one way: 0.086 -> 0.075
/// us). From some 300 on it costs less.
[[gnu::always_inline]] inline void copy(void* to, const void* from, std::size_t size) {
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);
  if (size - 8 <= 8) {  // 8 to 16
    std::uint64_t first, last;
    std::memcpy(&first, in, 8);
    std::memcpy(&last, in + size - 8, 8);
    std::memcpy(out, &first, 8);
    std::memcpy(out + size - 8, &last, 8);
  } else if (size - 16 <= 240) {  // 17 to 256
    copy_by_sixteen(out, in, size);
  } else if (size != 0) {
    copy_across(out, in, size);
  }
}

/// Copies [offset, offset + size) of the described memory to `out`.
inline std::size_t gather(const canele_data_t& d, std::size_t offset, std::size_t size, std::byte* out) {
  if (d.segments == nullptr) {
    size = offset >= d.length ? 0 : std::min(size, d.length - offset);
    copy(out, static_cast<const std::byte*>(d.base) + offset, size);
    return size;
  }
  return each_piece(d, offset, size, [&](const void* memory, std::size_t n) {
    if (n != 0) std::memcpy(out, memory, n);
    out += n;
  });
}

/// scatter() for memory that is described by pieces.
[[gnu::noinline]] inline std::size_t scatter_pieces(const canele_data_t& d, std::size_t offset, const std::byte* in,
                                                    std::size_t size) {
  return each_piece(d, offset, size, [&](void* memory, std::size_t n) {
    if (n != 0) std::memcpy(memory, in, n);
    in += n;
  });
}

/// Copies `in` to [offset, …) of the described memory; what does not fit is left out. Returns the bytes copied.
[[gnu::always_inline]] inline std::size_t scatter(const canele_data_t& d, std::size_t offset, const std::byte* in,
                                                  std::size_t size) {
  if (d.segments != nullptr) [[unlikely]]
    return scatter_pieces(d, offset, in, size);
  size = offset >= d.length ? 0 : std::min(size, d.length - offset);
  copy(static_cast<std::byte*>(d.base) + offset, in, size);
  return size;
}

}  // namespace canele::comm::data
