// SPDX-License-Identifier: BSD-3-Clause
//
// Pinning: which cores this process may use, and pinning one thread to cores. Any thread; it pins the calling thread.
//
// Threads that this thread starts later inherit the cores, including those of a library.
#pragma once

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace canele::perf {

/// Returns OS indexes, ascending; empty if the system does not report them.
inline std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

/// Pins the calling thread. Throws std::runtime_error with the reason.
inline void pin_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string names;
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
    names += (names.empty() ? "" : ",") + std::to_string(core);
  }
  if (sched_setaffinity(0, sizeof set, &set) == 0) return;
  throw std::runtime_error("cannot pin to core " + names + ": " + std::strerror(errno) +
                           "; expected: other --cores, or --no-pin");
}

}  // namespace canele::perf
