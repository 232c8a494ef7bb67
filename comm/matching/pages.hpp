// SPDX-License-Identifier: BSD-3-Clause
//
// Memory from the system, a huge page at a time: what is looked into at random should miss the cache, but not the page
// table too.
//
// Who: pools of what a burst of messages takes. Threads: any.
// Surprise: huge pages are advice: where there are none, ordinary ones do, and nothing is resident before it is used.
#pragma once

#include <cstddef>

namespace canele::comm {

inline constexpr std::size_t huge_page = 2 << 20;

/// Aligned to its size, untouched, of ordinary pages. nullptr if there is no memory.
void* map_huge_page() noexcept;
/// From now on the system may use huge pages for it.
void want_huge_pages(void* memory, std::size_t bytes = huge_page) noexcept;
void unmap_huge_page(void* memory) noexcept;

}  // namespace canele::comm
