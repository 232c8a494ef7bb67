// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryReserve: blocks set aside for the moment when the system has no memory, so that operations under way can
// complete.
//
// The library's operator new (reserving_new.cpp) takes blocks; a thread that makes progress checks is_scarce(). Any
// thread. Lock-free, and without any allocation while blocks are taken.
//
// The blocks come from the operator new of the process, and go back to its operator delete. So a block needs no mark of
// its origin, and any module may free it.
//
//   plain_, aligned_, arrays_: [size class] ─▶ │ block │ block │ free │ …      each entry: an atomic pointer
//
//   operator new fails ─▶ take(): a block of the first class that fits ─▶ short_ = true
//   operator new works ─▶ refill(): entries that are free get new blocks; short_ = false when all have one
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace canele::ltask {

class MemoryReserve {
 public:
  /// The operator new that allocates a block, and the operator delete that frees it.
  enum class Kind { plain, aligned, array };                ///< aligned: to a cache line
  using Allocate = void* (*)(std::size_t size, Kind kind);  ///< returns nullptr if there is no memory; does not throw

  /// Blocks of one size, in bytes. With fewer than `scarce` blocks the library begins nothing new.
  struct Class {
    std::size_t size;
    std::size_t count, scarce;
  };
  static constexpr std::size_t cache_line = 64;
  static constexpr std::array<Class, 6> plain = {
      {{128, 96, 48}, {512, 48, 24}, {2048, 24, 12}, {8192, 12, 6}, {32768, 6, 2}, {131072, 3, 1}}};
  static constexpr std::array<Class, 3> aligned = {{{1024, 24, 12}, {4096, 8, 4}, {16384, 4, 1}}};
  static constexpr std::array<Class, 3> arrays = {{{1024, 8, 2}, {16384, 4, 1}, {65536, 3, 0}}};

  explicit constexpr MemoryReserve(Allocate allocate) noexcept : allocate_(allocate) {}
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  /// Fills the free entries. Returns false if the system has no memory for all of them.
  bool refill() noexcept;

  /// Takes a block of at least `size` bytes. Returns nullptr if none is left that is large enough.
  void* take(std::size_t size, Kind kind) noexcept;

  /// Returns whether blocks are missing: the next allocation that succeeds shall refill them.
  bool is_short() const noexcept { return short_.load(std::memory_order_relaxed); }
  /// Returns whether so many blocks are missing that nothing new should begin before a refill has succeeded.
  bool is_scarce() const noexcept { return scarce_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t most = 96;
  template <std::size_t classes>
  struct Blocks {
    std::array<std::array<std::atomic<void*>, most>, classes> entries{};
  };
  template <std::size_t classes>
  bool fill(Blocks<classes>& blocks, const std::array<Class, classes>& shape, Kind kind) noexcept;
  template <std::size_t classes>
  void* take(Blocks<classes>& blocks, const std::array<Class, classes>& shape, std::size_t size) noexcept;

  const Allocate allocate_;
  std::atomic<bool> short_{true}, scarce_{false};
  Blocks<plain.size()> plain_{};
  Blocks<aligned.size()> aligned_{};
  Blocks<arrays.size()> arrays_{};
};

/// The reserve of the process. It is empty until the first engine fills it. It stays empty where the library does not
/// allocate through it (tests, simulator).
extern constinit MemoryReserve memory_reserve;

}  // namespace canele::ltask
