// SPDX-License-Identifier: BSD-3-Clause
//
// CacheWarmer: an ltask that keeps the blocks of a list in the caches of the core that runs it ("hot
// caching", Dosanjh 2017, 5.5). Meant for a core that shares a cache with the core that matches.
//
// Used by the engine, after polls that found nothing (CANELE_EXPERT_CACHE_WARMER), and by match_campaign.
//
// Threading: Regions::add is called under the lock of the structure that owns the memory. Any thread may call the other
// functions at any time. The task only prefetches and reads nothing. So it takes no lock and has no data race, and
// memory that was freed meanwhile does no harm.
//
//   newest ──▶ region ──▶ region ──▶ region      one for each slab of blocks; none is ever removed
//                ▲
//   warmer ──────┘  so many lines a run, continuing after the last one; then a pause until the period ends
//
// Rejected: a lock over the list (the source's own bottleneck).
// Rejected: reading a word of each line (faults on freed memory).
// Rejected: a thread of its own (on few cores it takes one from the program).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ltask/task.hpp"

namespace canele::comm::matching {

struct Region {
  const std::byte* begin;
  std::size_t bytes;
  const Region* next = nullptr;
};

/// The memory in which a structure keeps its entries. Grows only. It must not be read after the end of a region: the
/// owner stops the cache warmer before it destroys the structure.
class Regions {
 public:
  void add(Region& region) noexcept {
    region.next = newest_.load(std::memory_order_relaxed);
    newest_.store(&region, std::memory_order_release);
  }
  const Region* newest() const noexcept { return newest_.load(std::memory_order_acquire); }

 private:
  std::atomic<const Region*> newest_{nullptr};
};

class CacheWarmer : public ltask::Task {
 public:
  static constexpr std::size_t lines_per_run = 512;  ///< 32 KiB, which take some microseconds

  /// period_ns: time from the beginning of one pass over all regions to that of the next, in ns; 0: it is off.
  explicit CacheWarmer(std::uint64_t period_ns) noexcept : period_ns_(period_ns) {}

  bool on() const noexcept { return period_ns_ != 0; }
  /// A program that needs the caches for itself pauses the cache warmer, and resumes it some time before it
  /// communicates.
  void pause() noexcept { paused_.store(true, std::memory_order_relaxed); }
  void resume() noexcept { paused_.store(false, std::memory_order_relaxed); }

  /// Returns true if it is time for a run. Only one caller at a time gets true, and must then submit the task (or call
  /// run()).
  bool due(std::uint64_t now_ns) noexcept;
  /// The task: prefetches at most lines_per_run lines.
  static void run(ltask::Task& task) noexcept;

  /// Return the number of lines warmed, and of completed passes over all regions.
  std::uint64_t lines() const noexcept { return lines_.load(std::memory_order_relaxed); }
  std::uint64_t passes() const noexcept { return passes_.load(std::memory_order_relaxed); }

  Regions regions;

 private:
  void warm() noexcept;

  const std::uint64_t period_ns_;
  std::atomic<bool> paused_{false}, taken_{false};
  std::atomic<std::uint64_t> next_ns_{0}, lines_{0}, passes_{0};
  // Owned by the thread for which due() has returned true:
  std::uint64_t begun_ns_ = 0;
  const Region* region_ = nullptr;  ///< where the next run continues; nullptr: with a new pass
  std::size_t offset_ = 0;
};

}  // namespace canele::comm::matching
