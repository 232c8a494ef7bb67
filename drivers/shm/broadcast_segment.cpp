// SPDX-License-Identifier: BSD-3-Clause
//
// The broadcast segment. See broadcast_segment.hpp. A MemoryKey of it is: u64 magic, u64 offset, u64 length.
//
// The first free units are taken, so that consecutive messages use the same memory, which is in the caches.
#include "drivers/shm/broadcast_segment.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "drivers/shm/memory.hpp"

namespace canele::drivers::shm {
namespace {

/// No list of pieces begins with this value: see cma.cpp.
constexpr std::uint64_t magic = 0x666c656873;  // "shelf", its name once

struct Named {
  std::uint64_t magic, offset, length;
};

/// Encodes a handle, which is never 0.
constexpr std::uint64_t handle_of(std::size_t first, std::size_t count) { return count << 8 | first; }

constexpr std::uint64_t mask_of(std::size_t first, std::size_t count) {
  return (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

}  // namespace

static_assert(BroadcastSegment::units == 64);

std::size_t BroadcastSegment::take(std::size_t count) {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  for (std::size_t first = 0; first + count <= units;) {
    const std::uint64_t wanted = mask_of(first, count);
    if ((taken & wanted) != 0) {
      ++first;
      // acquire: pairs with the release in release(): the earlier use of the units happens before the new stores.
    } else if (taken_.compare_exchange_weak(taken, taken | wanted, std::memory_order_acquire)) {
      return first;
    } else {
      first = 0;
    }
  }
  return units;
}

bool BroadcastSegment::has_memory(std::size_t bytes) {
  if (bytes <= backed_.load(std::memory_order_acquire)) return true;
  const std::lock_guard guard(growth_);
  const std::size_t before = backed_.load(std::memory_order_relaxed);
  if (bytes <= before) return true;
  if (!give_memory(memfd_, sizeof(SleepPage) + before, bytes - before)) return false;
  // One call; without it each page is populated at its first store.
  ::madvise(own_ + before, bytes - before, MADV_POPULATE_WRITE);
  backed_.store(bytes, std::memory_order_release);
  return true;
}

bool BroadcastSegment::put(const iovec* pieces, int count, MemoryKey* rkey) {
  std::size_t length = 0;
  for (int i = 0; i < count; ++i) length += pieces[i].iov_len;
  if (own_ == nullptr || length == 0 || length > longest) return false;
  const std::size_t needed = (length + unit - 1) / unit;
  const std::size_t first = take(needed);
  if (first == units) return false;
  if (!has_memory((first + needed) * unit)) {
    release(handle_of(first, needed));
    return false;
  }
  std::byte* to = own_ + first * unit;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len != 0) std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    to += pieces[i].iov_len;
  }
  const Named named{magic, first * unit, length};
  std::memcpy(rkey->bytes, &named, sizeof named);
  rkey->size = sizeof named;
  rkey->copied = own_ + first * unit;
  rkey->handle = handle_of(first, needed);
  return true;
}

void BroadcastSegment::release(std::uint64_t handle) {
  taken_.fetch_and(~mask_of(handle & 0xff, handle >> 8), std::memory_order_release);
}

bool BroadcastSegment::is_named_by(std::span<const std::byte> rkey) {
  std::uint64_t word = 0;
  if (rkey.size() != sizeof(Named)) return false;
  std::memcpy(&word, rkey.data(), sizeof word);
  return word == magic;
}

bool BroadcastSegment::copy_out(const std::byte* file, std::span<const std::byte> rkey, std::uint64_t offset,
                                const iovec* pieces, int count, std::size_t size) {
  Named named;
  if (file == nullptr || rkey.size() != sizeof named) return false;
  std::memcpy(&named, rkey.data(), sizeof named);
  if (named.length > BroadcastSegment::size || named.offset > BroadcastSegment::size - named.length) return false;
  if (offset > named.length || size > named.length - offset) return false;
  const std::byte* from = file + sizeof(SleepPage) + named.offset + offset;
  for (int i = 0; i < count && size > 0; ++i) {
    const std::size_t part = std::min(size, pieces[i].iov_len);
    if (part != 0) std::memcpy(pieces[i].iov_base, from, part);
    from += part;
    size -= part;
  }
  return size == 0;
}

}  // namespace canele::drivers::shm
