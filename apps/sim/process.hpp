// SPDX-License-Identifier: BSD-3-Clause
//
// The resources that the simulator takes from the machine it runs on: memory, descriptors, mappings.
//
// One thread. The heap of the engines is the process's heap without that of the simulator (drivers/sim/counted.hpp).
// Pages that engines map themselves appear in `resident` only.
#pragma once

#include <cstddef>
#include <string>

namespace canele::sim {

struct MemoryUse {
  std::size_t resident = 0;  ///< bytes of pages in memory
  std::size_t heap = 0;      ///< bytes of malloc, in use, including the header of each block
  std::size_t counted = 0;   ///< part of `heap` that belongs to the simulator
};
MemoryUse memory_use();
/// Returns the memory use after malloc has returned freed pages, so that growth of `resident` is visible.
MemoryUse memory_after_trim();
/// Returns the highest resident size so far.
std::size_t most_resident();

/// Raises the limits of this process for `engines` engines. Returns why that fails, or "".
std::string make_room_for(int engines);

}  // namespace canele::sim
