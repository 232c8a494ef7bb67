// SPDX-License-Identifier: BSD-3-Clause
//
// The shelf. See shelf.hpp. An Exposure of it is: u64 mark, u64 offset on the shelf, u64 length.
//
// The first free units are taken, so that consecutive messages use the same memory, which is in the caches.
#include "drivers/shm/shelf.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace canele::drivers::shm {
namespace {

/// No list of pieces begins with this value: see attach.cpp.
constexpr std::uint64_t mark = 0x666c656873;  // "shelf"

struct Named {
  std::uint64_t mark, offset, length;
};

/// Encodes a handle, which is never 0.
constexpr std::uint64_t handle_of(std::size_t first, std::size_t count) { return count << 8 | first; }

constexpr std::uint64_t mask_of(std::size_t first, std::size_t count) {
  return (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

}  // namespace

static_assert(Shelf::units == 64);

std::size_t Shelf::take(std::size_t count) {
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

bool Shelf::has_memory(std::size_t bytes) {
  if (bytes <= backed_.load(std::memory_order_acquire)) return true;
  const std::lock_guard guard(growth_);
  const std::size_t before = backed_.load(std::memory_order_relaxed);
  if (bytes <= before) return true;
  if (!give_memory(memfd_, sizeof(ParkPage) + before, bytes - before)) return false;
  // One call; without it each page is populated at its first store.
  ::madvise(own_ + before, bytes - before, MADV_POPULATE_WRITE);
  backed_.store(bytes, std::memory_order_release);
  return true;
}

bool Shelf::put(const iovec* pieces, int count, Exposure* exposure) {
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
  const Named named{mark, first * unit, length};
  std::memcpy(exposure->bytes, &named, sizeof named);
  exposure->size = sizeof named;
  exposure->copied = own_ + first * unit;
  exposure->handle = handle_of(first, needed);
  return true;
}

void Shelf::release(std::uint64_t handle) {
  taken_.fetch_and(~mask_of(handle & 0xff, handle >> 8), std::memory_order_release);
}

bool Shelf::is_named_by(std::span<const std::byte> exposure) {
  std::uint64_t word = 0;
  if (exposure.size() != sizeof(Named)) return false;
  std::memcpy(&word, exposure.data(), sizeof word);
  return word == mark;
}

bool Shelf::copy_out(const std::byte* file, std::span<const std::byte> exposure, std::uint64_t offset,
                     const iovec* pieces, int count, std::size_t size) {
  Named named;
  if (file == nullptr || exposure.size() != sizeof named) return false;
  std::memcpy(&named, exposure.data(), sizeof named);
  if (named.length > Shelf::size || named.offset > Shelf::size - named.length) return false;
  if (offset > named.length || size > named.length - offset) return false;
  const std::byte* from = file + sizeof(ParkPage) + named.offset + offset;
  for (int i = 0; i < count && size > 0; ++i) {
    const std::size_t part = std::min(size, pieces[i].iov_len);
    if (part != 0) std::memcpy(pieces[i].iov_base, from, part);
    from += part;
    size -= part;
  }
  return size == 0;
}

}  // namespace canele::drivers::shm
