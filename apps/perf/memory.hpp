// SPDX-License-Identifier: BSD-3-Clause
//
// Resident memory of this process, as the kernel counts it.
//
// Who: flood. Threads: any.
// Surprise: the highest value is of the process's whole life unless it is reset; where the kernel refuses that, a peak
// of
//     the start counts, too, and what is shown is then more than what was used, never less.
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace canele::perf {

/// VmRSS (now) or VmHWM (at most) in bytes. Throws std::runtime_error where there is no such thing.
inline std::uint64_t resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name; std::getline(status, name)) {
    std::uint64_t kib = 0;
    if (name == which + ":" && status >> kib) return kib << 10;
  }
  throw std::runtime_error("/proc/self/status tells no " + which + ": memory cannot be measured here");
}

/// VmHWM starts anew.
inline void forget_highest() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace canele::perf
