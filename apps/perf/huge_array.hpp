// SPDX-License-Identifier: BSD-3-Clause
//
// HugeArray: a vector whose memory is in huge pages, if it is large. Any thread.
//
// The match benchmark uses it for its own arrays. Debian's kernel gives large arrays huge pages by default
// (transparent_hugepage = always). Under madvise a program has to request them. The benchmark requests them for every
// library, so that all are measured alike.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace canele::perf {

template <typename Value>
struct HugePages {
  using value_type = Value;
  HugePages() = default;
  template <typename Other>
  HugePages(const HugePages<Other>&) {}

  Value* allocate(std::size_t count) {
    constexpr std::size_t huge_page = 2 << 20;
    const std::size_t bytes = count * sizeof(Value);
    const bool large = bytes >= huge_page;
    void* memory = nullptr;
    if (posix_memalign(&memory, large ? huge_page : alignof(std::max_align_t), bytes) != 0) throw std::bad_alloc();
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<Value*>(memory);
  }
  void deallocate(Value* memory, std::size_t) { std::free(memory); }
  friend bool operator==(const HugePages&, const HugePages&) { return true; }
};

template <typename Value>
using HugeArray = std::vector<Value, HugePages<Value>>;

}  // namespace canele::perf
