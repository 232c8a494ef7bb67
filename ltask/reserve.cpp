// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryReserve.
//
// A thread that refills and one that takes may meet at an entry. Each changes the entry by one exchange, so a block has
// one owner at any time. If a refill finds an entry filled meanwhile, the entry keeps its block.
#include "ltask/reserve.hpp"

namespace canele::ltask {
namespace {

using Kind = MemoryReserve::Kind;
constexpr std::align_val_t line{MemoryReserve::cache_line};

void* from_the_process(std::size_t size, Kind kind) {
  switch (kind) {
    case Kind::aligned:
      return ::operator new(size, line, std::nothrow);
    case Kind::array:
      return ::operator new[](size, std::nothrow);
    case Kind::plain:
      break;
  }
  return ::operator new(size, std::nothrow);
}

void to_the_process(void* block, Kind kind) {
  switch (kind) {
    case Kind::aligned:
      return ::operator delete(block, line);
    case Kind::array:
      return ::operator delete[](block);
    case Kind::plain:
      return ::operator delete(block);
  }
}

}  // namespace

constinit MemoryReserve memory_reserve(from_the_process);

template <std::size_t classes>
bool MemoryReserve::fill(Blocks<classes>& blocks, const std::array<Class, classes>& shape, Kind kind) noexcept {
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t k = 0; k < shape[i].count; ++k) {
      std::atomic<void*>& entry = blocks.entries[i][k];
      if (entry.load(std::memory_order_relaxed) != nullptr) continue;
      void* const block = allocate_(shape[i].size, kind);
      if (block == nullptr) return false;
      void* expected = nullptr;
      // release: pairs with the exchange in take(), so that the thread that takes the block sees what malloc wrote into
      // it.
      if (!entry.compare_exchange_strong(expected, block, std::memory_order_release, std::memory_order_relaxed))
        to_the_process(block, kind);
    }
  }
  return true;
}

bool MemoryReserve::refill() noexcept {
  short_.store(false, std::memory_order_relaxed);  // first: a block that is taken meanwhile sets it again
  if (!fill(plain_, plain, Kind::plain) || !fill(aligned_, aligned, Kind::aligned) ||
      !fill(arrays_, arrays, Kind::array)) {
    short_.store(true, std::memory_order_relaxed);
    return false;
  }
  scarce_.store(false, std::memory_order_relaxed);
  return true;
}

template <std::size_t classes>
void* MemoryReserve::take(Blocks<classes>& blocks, const std::array<Class, classes>& shape, std::size_t size) noexcept {
  for (std::size_t i = 0; i < classes; ++i) {
    if (shape[i].size < size) continue;
    // From the end, so that the index of the block found tells how many are left.
    for (std::size_t k = shape[i].count; k-- > 0;) {
      std::atomic<void*>& entry = blocks.entries[i][k];
      if (entry.load(std::memory_order_relaxed) == nullptr) continue;
      // acquire: pairs with the release in fill().
      void* const block = entry.exchange(nullptr, std::memory_order_acquire);
      if (block == nullptr) continue;
      if (k <= shape[i].scarce) scarce_.store(true, std::memory_order_relaxed);
      return block;
    }
  }
  scarce_.store(true, std::memory_order_relaxed);
  return nullptr;
}

void* MemoryReserve::take(std::size_t size, Kind kind) noexcept {
  short_.store(true, std::memory_order_relaxed);
  switch (kind) {
    case Kind::aligned:
      return take(aligned_, aligned, size);
    case Kind::array:
      return take(arrays_, arrays, size);
    case Kind::plain:
      break;
  }
  return take(plain_, plain, size);
}

}  // namespace canele::ltask
