// SPDX-License-Identifier: BSD-3-Clause
//
// The hardware to which this process is restricted, by hwloc. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace canele::mpi {

/// The kinds of hardware that programs can ask for, from the largest on. The names are those of hwloc.
inline constexpr const char* hardware_kinds[] = {"hwloc://Machine", "hwloc://Package", "hwloc://NUMANode",
                                                 "hwloc://L3Cache", "hwloc://L2Cache", "hwloc://Core",
                                                 "hwloc://PU"};
inline constexpr int hardware_kind_count = sizeof hardware_kinds / sizeof hardware_kinds[0];

/// Returns the index of a name in hardware_kinds; -1: none has it.
int hardware_kind(std::string_view name);

/// Where the process may run. It is restricted to an object of a kind if it may not run elsewhere.
struct HardwarePlace {
  char machine[40];  ///< identifies the kernel that runs: containers of a machine have the same
  std::int32_t objects[hardware_kind_count];  ///< the number of the object; -1: the process is not restricted to one
};

/// Reads the topology of the machine, which takes milliseconds. A kind that cannot be read has no objects.
HardwarePlace own_hardware_place();

}  // namespace canele::mpi
