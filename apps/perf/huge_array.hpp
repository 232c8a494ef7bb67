// SPDX-License-Identifier: BSD-3-Clause
//
// HugeArray: a vector whose memory is in huge pages, if it is large.
//
// Who: match, for the arrays of the program that is measured. Threads: any.
// Surprise: Debian's kernel gives large arrays huge pages unasked (transparent_hugepage = always); where it has to be
//     asked (madvise), the benchmark asks, for every library alike, so that the same is measured.
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
