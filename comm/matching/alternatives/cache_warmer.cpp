// SPDX-License-Identifier: BSD-3-Clause
//
// CacheWarmer: any thread may run it, one at a time (`taken_`). A pass in progress continues at once (next_ns_ 0), in
// slices, so that no poll takes long.
#include "comm/matching/alternatives/cache_warmer.hpp"

#include "comm/matching/prefetch.hpp"

namespace canele::comm::matching {
namespace {
constexpr std::size_t line = 64;
}

bool CacheWarmer::due(std::uint64_t now_ns) noexcept {
  if (!on() || paused_.load(std::memory_order_relaxed) || now_ns < next_ns_.load(std::memory_order_relaxed))
    return false;
  if (taken_.exchange(true, std::memory_order_acquire)) return false;
  if (now_ns < next_ns_.load(std::memory_order_relaxed)) {  // another thread has just completed a pass
    taken_.store(false, std::memory_order_release);
    return false;
  }
  if (region_ == nullptr) {
    region_ = regions.newest();
    offset_ = 0;
    begun_ns_ = now_ns;
  }
  prepare(run);
  return true;
}

void CacheWarmer::run(ltask::Task& task) noexcept {
  auto& cache_warmer = static_cast<CacheWarmer&>(task);
  cache_warmer.warm();
  cache_warmer.taken_.store(false, std::memory_order_release);  // release: pairs with the acquire exchange in due(), so
                                                                // that the next thread sees our position
}

void CacheWarmer::warm() noexcept {
  std::size_t left = lines_per_run;
  while (region_ != nullptr && left > 0) {
    for (; offset_ < region_->bytes && left > 0; offset_ += line, --left) {
      prefetch_to_read(region_->begin + offset_);
    }
    if (offset_ >= region_->bytes) region_ = region_->next, offset_ = 0;
  }
  lines_.fetch_add(lines_per_run - left, std::memory_order_relaxed);
  if (region_ != nullptr) return next_ns_.store(0, std::memory_order_relaxed);
  passes_.fetch_add(1, std::memory_order_relaxed);
  next_ns_.store(begun_ns_ + period_ns_, std::memory_order_relaxed);
}

}  // namespace canele::comm::matching
