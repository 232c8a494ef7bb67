// SPDX-License-Identifier: BSD-3-Clause
//
// Resident memory of this process, as the kernel counts it. Any thread.
//
// The highest value covers the process's whole life unless it is reset. If the kernel refuses the reset, an earlier
// peak counts, too. The shown value is then more than what was used, never less.
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace canele::perf {

/// Returns VmRSS (now) or VmHWM (maximum) in bytes. Throws std::runtime_error if the kernel has no such value.
inline std::uint64_t resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name; std::getline(status, name)) {
    std::uint64_t kib = 0;
    if (name == which + ":" && status >> kib) return kib << 10;
  }
  throw std::runtime_error("/proc/self/status has no " + which + ": memory cannot be measured here");
}

/// Resets VmHWM.
inline void forget_highest() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace canele::perf
