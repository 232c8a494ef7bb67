// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryReserve. See reserve.hpp (who, threads).
// Surprise: a thread that refills and one that takes may meet at an entry. Each changes it by one exchange, so a block
//     has one owner at any time; an entry that a refill finds filled meanwhile keeps what is there.
#include "ltask/reserve.hpp"

namespace canele::ltask {
namespace {

void* from_the_process(std::size_t size, std::size_t alignment) {
  return alignment == MemoryReserve::cache_line
             ? ::operator new (size, std::align_val_t{MemoryReserve::cache_line}, std::nothrow)
             : ::operator new(size, std::nothrow);
}

void to_the_process(void* block, std::size_t alignment) {
  alignment == MemoryReserve::cache_line ? ::operator delete (block, std::align_val_t{MemoryReserve::cache_line})
                                         : ::operator delete(block);
}

}  // namespace

constinit MemoryReserve memory_reserve(from_the_process);

template <std::size_t classes>
bool MemoryReserve::fill(Kind<classes>& kind, const std::array<Class, classes>& shape, std::size_t alignment) noexcept {
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t k = 0; k < shape[i].count; ++k) {
      std::atomic<void*>& entry = kind.blocks[i][k];
      if (entry.load(std::memory_order_relaxed) != nullptr) continue;
      void* const block = allocate_(shape[i].size, alignment);
      if (block == nullptr) return false;
      void* expected = nullptr;
      // Pairs with the exchange in take(): the thread that takes the block sees what malloc wrote into it.
      if (!entry.compare_exchange_strong(expected, block, std::memory_order_release, std::memory_order_relaxed))
        to_the_process(block, alignment);
    }
  }
  return true;
}

bool MemoryReserve::refill() noexcept {
  short_.store(false, std::memory_order_relaxed);  // first: a block that is taken meanwhile sets it again
  if (!fill(plain_, plain, alignof(std::max_align_t)) || !fill(aligned_, aligned, cache_line)) {
    short_.store(true, std::memory_order_relaxed);
    return false;
  }
  scarce_.store(false, std::memory_order_relaxed);
  return true;
}

template <std::size_t classes>
void* MemoryReserve::take(Kind<classes>& kind, const std::array<Class, classes>& shape, std::size_t size) noexcept {
  for (std::size_t i = 0; i < classes; ++i) {
    if (shape[i].size < size) continue;
    // From the end, so that how far one has to look tells how many are left.
    for (std::size_t k = shape[i].count; k-- > 0;) {
      std::atomic<void*>& entry = kind.blocks[i][k];
      if (entry.load(std::memory_order_relaxed) == nullptr) continue;
      // Pairs with the release in fill().
      void* const block = entry.exchange(nullptr, std::memory_order_acquire);
      if (block == nullptr) continue;
      if (k <= shape[i].scarce) scarce_.store(true, std::memory_order_relaxed);
      return block;
    }
  }
  scarce_.store(true, std::memory_order_relaxed);
  return nullptr;
}

void* MemoryReserve::take(std::size_t size, std::size_t alignment) noexcept {
  short_.store(true, std::memory_order_relaxed);
  return alignment <= alignof(std::max_align_t) ? take(plain_, plain, size) : take(aligned_, aligned, size);
}

}  // namespace canele::ltask
