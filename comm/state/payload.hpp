// SPDX-License-Identifier: BSD-3-Clause
//
// Data: reads and writes the user's memory, described by canele_data_t, by position in the message.
//
// Used by protocol/ and api/. Any thread.
//
// A user's description is not trusted. If a segment callback returns nothing, or more than was asked for, the copy ends
// instead of running on.
//
// A list of pieces remembers its last position, in the field of its canele_data_t that otherwise only contiguous data
// uses. Threads that copy different parts may each move this position.
#pragma once

#include <canele/canele.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace canele::comm::data {

/// Position of the last access to a list of pieces: piece `index` begins at byte `at` of the message. Both are in one
/// word, so that threads which copy parts of one message need no lock. A position that does not fit into the word is
/// not remembered.
struct Place {
  static constexpr int index_bits = 28;
  std::size_t index = 0, at = 0;

  static Place load(const canele_data_t& d) {
    const auto word = reinterpret_cast<std::uintptr_t>(
        std::atomic_ref(const_cast<canele_data_t&>(d).base).load(std::memory_order_relaxed));
    return {word & ((std::uintptr_t{1} << index_bits) - 1), word >> index_bits};
  }
  void store(const canele_data_t& d) const {
    if (index >> index_bits != 0 || at >> (64 - index_bits) != 0) return;
    const std::uintptr_t word = std::uintptr_t{at} << index_bits | index;
    std::atomic_ref(const_cast<canele_data_t&>(d).base).store(reinterpret_cast<void*>(word), std::memory_order_relaxed);
  }
  /// Moves to the piece that holds byte `offset`, from the current piece or from the front.
  void walk(const canele_iov_t& vector, std::size_t offset) {
    if (index > static_cast<std::size_t>(std::max(vector.count, 0)) || offset < at / 2) index = at = 0;
    while (at > offset && index > 0) at -= vector.pieces[--index].iov_len;
    for (; index < static_cast<std::size_t>(vector.count); ++index) {
      const std::size_t length = vector.pieces[index].iov_len;
      if (offset - at < length) break;
      at += length;
    }
  }
};

/// Segment functions of a list of pieces. list_segments() marks a description as such a list; list_pieces() is called
/// in its place.
int list_segments(const void* context, std::size_t offset, iovec* out, int max);
inline int list_pieces(const canele_data_t& d, std::size_t offset, iovec* out, int max) {
  const auto& vector = *static_cast<const canele_iov_t*>(d.context);
  Place place = Place::load(d);
  place.walk(vector, offset);
  place.store(d);
  std::size_t from = offset - place.at;
  int n = 0;
  for (std::size_t i = place.index; i < static_cast<std::size_t>(vector.count) && n < max; ++i, from = 0) {
    const iovec& piece = vector.pieces[i];
    if (piece.iov_len != 0) out[n++] = {static_cast<std::byte*>(piece.iov_base) + from, piece.iov_len - from};
  }
  return n;
}

/// Writes up to `max` pieces that hold bytes [offset, offset + size), or the front of that range, to `out`. Returns
/// their number. *covered is the number of bytes in them.
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
  const bool is_list = d.segments == list_segments;
  const int given = is_list ? list_pieces(d, offset, out, max) : d.segments(d.context, offset, out, max);
  const int n = std::clamp(given, 0, max);
  int used = 0;
  for (int i = 0; i < n && *covered < size; ++i) {
    out[i].iov_len = std::min(out[i].iov_len, size - *covered);
    *covered += out[i].iov_len;
    used = i + 1;
  }
  return used;
}

/// Calls visit(memory, length) for each piece of [offset, offset + size), in order. Returns the bytes visited.
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

/// memcpy of data that comes from another core, or goes there. Sizes between 2 and 4 KiB are copied in two steps. Above
/// 2 KiB the C library uses `rep movs`, whose startup cost does not pay off for such sizes.
inline void copy_across(std::byte* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t step = 2048;
  assert(to != nullptr);
  if (to == nullptr) __builtin_unreachable();  // without this, GCC warns of unbound receives, which never come here
  if (size > step && size <= 2 * step) {
    std::memcpy(to, from, step);
    to += step, from += step, size -= step;
  }
  std::memcpy(to, from, size);
}

/// Copies in moves of 16 bytes; the last one may overlap the one before.
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

/// memcpy, inlined for 8 to 256 bytes: on the path of a message, a call costs more. For longer copies a call costs
/// less.
[[gnu::always_inline]] inline void copy(void* to, const void* from, std::size_t size) {
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);
  if (size - 8 <= 8) {  // 8 to 16 bytes
    std::uint64_t first, last;
    std::memcpy(&first, in, 8);
    std::memcpy(&last, in + size - 8, 8);
    std::memcpy(out, &first, 8);
    std::memcpy(out + size - 8, &last, 8);
  } else if (size - 16 <= 240) {  // 17 to 256 bytes
    copy_by_sixteen(out, in, size);
  } else if (size != 0) {
    copy_across(out, in, size);
  }
}

/// Copies [offset, offset + size) of the described memory to `out`. Returns the bytes copied.
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

/// Copies `in` to [offset, …) of the described memory, and omits what does not fit. Returns the bytes copied.
[[gnu::always_inline]] inline std::size_t scatter(const canele_data_t& d, std::size_t offset, const std::byte* in,
                                                  std::size_t size) {
  if (d.segments != nullptr) [[unlikely]]
    return scatter_pieces(d, offset, in, size);
  size = offset >= d.length ? 0 : std::min(size, d.length - offset);
  copy(static_cast<std::byte*>(d.base) + offset, in, size);
  return size;
}

}  // namespace canele::comm::data
