// SPDX-License-Identifier: BSD-3-Clause
//
// Memory from the system, one huge page at a time. A random access should miss the cache, but not the TLB as well.
//
// Used by the pools for bursts of messages. Any thread may call these functions.
//
// Huge pages are advice: without them ordinary pages are used. No page is resident before it is used.
#pragma once

#include <cstddef>

namespace canele::comm {

inline constexpr std::size_t huge_page = 2 << 20;

/// Maps ordinary pages, untouched, aligned to their size. Returns nullptr if there is no memory.
void* map_huge_page() noexcept;
/// Allows the system to use huge pages for this memory from now on.
void want_huge_pages(void* memory, std::size_t bytes = huge_page) noexcept;
void unmap_huge_page(void* memory) noexcept;

}  // namespace canele::comm
