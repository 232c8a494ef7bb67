// SPDX-License-Identifier: BSD-3-Clause
//
// StagingPool: pinned host memory for messages of device memory.
//
// Pinning costs more than the copy of a short message, so memory is kept for the next one, by size. Sizes are powers of
// two. What is kept is limited; what messages use at a time is limited by the program.
//
// Threading: any thread, but not under the engine's lock: pinning enters the kernel.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/memory.hpp"

namespace canele::comm::device {

struct StagingMemory {
  std::byte* base = nullptr;
  int size_class = 0;
};

class StagingPool {
 public:
  StagingPool(drivers::Memory& memory, std::size_t most_kept) : memory_(memory), most_kept_(most_kept) {}
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  /// Returns memory for `size` bytes; its base is nullptr, and *why is set, if there is none.
  StagingMemory take(std::size_t size, std::string* why);
  void give_back(const StagingMemory& memory);

 private:
  static constexpr int smallest_shift = 12, classes = 52;
  static std::size_t size_of(int size_class) { return std::size_t{1} << (size_class + smallest_shift); }

  drivers::Memory& memory_;
  const std::size_t most_kept_;
  std::mutex mutex_;
  std::size_t kept_ = 0;
  std::vector<std::byte*> spare_[classes];
};

}  // namespace canele::comm::device
