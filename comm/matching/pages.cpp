// SPDX-License-Identifier: BSD-3-Clause
//
// Memory from the system. The system aligns to ordinary pages only. So twice the size is mapped, and the excess is
// unmapped at once.
#include "comm/matching/pages.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace canele::comm {

void* map_huge_page() noexcept {
  void* const memory = mmap(nullptr, 2 * huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (begin + huge_page - 1) & ~std::uintptr_t{huge_page - 1};
  if (aligned != begin) munmap(memory, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + huge_page), begin + huge_page - aligned);
  return reinterpret_cast<void*>(aligned);
}

void want_huge_pages(void* memory, std::size_t bytes) noexcept { madvise(memory, bytes, MADV_HUGEPAGE); }

void unmap_huge_page(void* memory) noexcept { munmap(memory, huge_page); }

}  // namespace canele::comm
