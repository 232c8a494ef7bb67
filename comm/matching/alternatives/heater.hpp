// SPDX-License-Identifier: BSD-3-Clause
//
// Heater: an ltask that keeps the blocks of a list in the caches of the core that runs it ("hot caching", Dosanjh 2017,
// 5.5: meant for a core that shares a cache with the one that matches).
//
// Who: the engine, in turns of polling that found nothing (CANELE_HEATER); match_campaign.
// Threads: Regions::add under the lock of the structure that owns the memory; the rest by any thread at any time.
// Surprise: it prefetches and reads nothing. So it takes no lock, races with nobody, and memory that has been given
//     back meanwhile does no harm.
//
//   newest ──▶ region ──▶ region ──▶ region      one for each slab of blocks; none leaves the list
//                ▲
//   heater ──────┘  so many lines a run, from where the last one ended; then nothing until the period is over
//
// Rejected: a lock over the list (the source's own bottleneck); reading a word of each line (faults on what was freed);
//     a thread of its own (on few cores it takes one from the program).
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

/// The memory that a structure keeps its entries in. Grows only, and must outlive no region: whoever destroys the
/// structure has stopped the heater before.
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

class Heater : public ltask::Task {
 public:
  static constexpr std::size_t lines_per_run = 512;  ///< 32 KiB: some microseconds

  /// period_ns: from the beginning of one pass over all regions to that of the next; 0: it is off.
  explicit Heater(std::uint64_t period_ns) noexcept : period_ns_(period_ns) {}

  bool on() const noexcept { return period_ns_ != 0; }
  /// A program that needs its caches for itself pauses it, and resumes it some time before it communicates.
  void pause() noexcept { paused_.store(true, std::memory_order_relaxed); }
  void resume() noexcept { paused_.store(false, std::memory_order_relaxed); }

  /// Is it time for a run? To one caller at a time: who is told so submits the task (or calls run()).
  bool due(std::uint64_t now_ns) noexcept;
  /// The task: at most lines_per_run lines.
  static void run(ltask::Task& task) noexcept;

  /// Lines warmed, passes over all regions that have ended.
  std::uint64_t lines() const noexcept { return lines_.load(std::memory_order_relaxed); }
  std::uint64_t passes() const noexcept { return passes_.load(std::memory_order_relaxed); }

  Regions regions;

 private:
  void warm() noexcept;

  const std::uint64_t period_ns_;
  std::atomic<bool> paused_{false}, taken_{false};
  std::atomic<std::uint64_t> next_ns_{0}, lines_{0}, passes_{0};
  // Of whoever has taken it:
  std::uint64_t begun_ns_ = 0;
  const Region* region_ = nullptr;  ///< where the next run goes on; nullptr: with a new pass
  std::size_t offset_ = 0;
};

}  // namespace canele::comm::matching
