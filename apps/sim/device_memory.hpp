// SPDX-License-Identifier: BSD-3-Clause
//
// DeviceMemories: memory of devices in a simulated world. Buffers of a workload are hidden there from the processor.
//
// One thread. A buffer that is given has other bytes than its device until it is taken back. So an engine that touches
// it with the processor sends or leaves wrong data. Copies read and write when they end, some polls after they have
// begun. Processes of the world can open each other's memory, unless the dice refuse it.
//
//   workload ─give─▶ contents (device)  ◀─copies─▶ staging memory, contents of other ranks
//            ◀─take─┘
#pragma once

#include <canele/canele.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/memory.hpp"
#include "drivers/sim/timeline.hpp"

namespace canele::sim {

class DeviceMemories {
 public:
  explicit DeviceMemories(std::uint64_t seed) : dice_(seed) {}
  DeviceMemories(const DeviceMemories&) = delete;
  DeviceMemories& operator=(const DeviceMemories&) = delete;

  /// Gives the engine of a rank a device. The engine must end before this object.
  void use(int rank, canele_engine_t* engine);
  /// Moves some of the buffers that it is shown to a device of the rank. Their bytes are elsewhere until take().
  void give(int rank, std::vector<std::byte>& bytes);
  /// Moves a buffer back, if it was given.
  void take(std::vector<std::byte>& bytes);

  /// Called when the processor has written to a buffer that was given.
  std::function<void(const std::string&)> complain;

 private:
  friend class SimMemory;
  struct Allocation {
    int rank;
    std::uint64_t number;
    std::vector<std::byte> contents;
  };

  /// Returns the allocation at an address, and its beginning; nullptr: host memory.
  Allocation* find(const std::byte* address, const std::byte** base);
  /// Returns where the bytes of an address are.
  std::byte* contents_of(std::byte* address);

  drivers::sim::Dice dice_;
  std::uint64_t allocations_ = 0;
  std::map<const std::byte*, Allocation> memory_;  ///< by address
};

}  // namespace canele::sim
