// SPDX-License-Identifier: BSD-3-Clause
//
// What the simulator takes of the machine it runs on: memory, descriptors, mappings.
//
// Who: canele-sim's workloads. Threads: one.
// Surprise: the heap of the engines is what is left of the process's heap when that of the simulator is taken off
//      (drivers/sim/counted.hpp); pages that engines map by themselves are seen in `resident` only.
#pragma once

#include <cstddef>
#include <string>

namespace canele::sim {

struct MemoryUse {
  std::size_t resident = 0;  ///< pages in memory
  std::size_t heap = 0;      ///< of malloc, in use, with what it keeps in front of each block
  std::size_t counted = 0;   ///< of that: the simulator's
};
MemoryUse memory_use();
/// The same after pages that malloc has kept of what was freed are given back, so that `resident` says what comes new.
MemoryUse memory_after_trim();
/// The most that was ever resident.
std::size_t most_resident();

/// Makes this process fit for so many engines. "" or why it cannot be.
std::string make_room_for(int engines);

}  // namespace canele::sim
