// SPDX-License-Identifier: BSD-3-Clause
//
// The arrays of the matcher's hash tables. See keyed_queues.hpp for the picture. Threads: any.
// Surprise: they come from the system, not from malloc, and so are zero without being touched: growing has no pause.
#include "comm/matching/keyed_queues.hpp"

#include <sys/mman.h>

#include "comm/matching/pages.hpp"

namespace canele::comm {

MatchBucket* MatchBucket::allocate(std::size_t buckets) noexcept {
  const std::size_t bytes = buckets * sizeof(MatchBucket);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Advice, for a look into a large table misses the page table, too. A smaller one would only take more than it needs.
  if (bytes >= huge_page) want_huge_pages(memory, bytes);
  return static_cast<MatchBucket*>(memory);
}

void MatchBucket::release(MatchBucket* table, std::size_t buckets) noexcept {
  munmap(table, buckets * sizeof(MatchBucket));
}

}  // namespace canele::comm
