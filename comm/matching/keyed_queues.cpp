// SPDX-License-Identifier: BSD-3-Clause
//
// The arrays of the matcher's hash tables. They come from the system, not from malloc. So they are zero without being
// touched, and growth causes no pause.
#include "comm/matching/keyed_queues.hpp"

#include <sys/mman.h>

#include "comm/matching/pages.hpp"

namespace canele::comm {

MatchBucket* MatchBucket::allocate(std::size_t buckets) noexcept {
  const std::size_t bytes = buckets * sizeof(MatchBucket);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Advice: an access to a large table misses the TLB as well. A huge page for a smaller table would only waste memory.
  if (bytes >= huge_page) want_huge_pages(memory, bytes);
  return static_cast<MatchBucket*>(memory);
}

void MatchBucket::release(MatchBucket* table, std::size_t buckets) noexcept {
  munmap(table, buckets * sizeof(MatchBucket));
}

}  // namespace canele::comm
