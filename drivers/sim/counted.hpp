// SPDX-License-Identifier: BSD-3-Clause
//
// Counted: counts the heap that the simulator itself takes, so that the rest of the process's heap is the engines'.
//
// Used by the containers of the fabrics, of the simulator's scheduler and of its oracle, on one thread. A block counts
// with its usable size and the header that malloc keeps in front of it. mallinfo2() counts so, too, and the two numbers
// are subtracted from each other.
//
// Rejected: a global operator new that finds out which component calls (every call between engine and simulator would
// have to announce it).
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <utility>

namespace canele::drivers::sim {

inline std::size_t counted_bytes = 0;

template <typename T>
struct Counted {
  using value_type = T;
  Counted() = default;
  template <typename U>
  Counted(const Counted<U>&) {}  // NOLINT: an allocator converts

  T* allocate(std::size_t count) {
    void* const memory = alignof(T) <= alignof(std::max_align_t) ? std::malloc(count * sizeof(T))
                                                                 : std::aligned_alloc(alignof(T), count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    counted_bytes += size_of(memory);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) {
    counted_bytes -= size_of(memory);
    std::free(memory);
  }
  template <typename U>
  bool operator==(const Counted<U>&) const {
    return true;
  }

 private:
  static std::size_t size_of(void* memory) { return ::malloc_usable_size(memory) + sizeof(std::size_t); }
};

template <typename Key, typename Value>
using CountedMap = std::map<Key, Value, std::less<Key>, Counted<std::pair<const Key, Value>>>;

}  // namespace canele::drivers::sim
