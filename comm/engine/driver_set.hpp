// SPDX-License-Identifier: BSD-3-Clause
//
// DriverSet: the open driver instances by kind, and what is known of all of them. Context::instances owns them.
//
// Constant after Engine::create(), so any thread may read it, except where a member says otherwise.
#pragma once

#include <atomic>
#include <vector>

#include "comm/config/samples.hpp"
#include "comm/state/under_lock.hpp"

namespace canele::comm {

struct DriverInstance;

struct DriverSet {
  std::vector<DriverInstance*> memory, system;        ///< by kind: reached through memory, or by system calls
  std::vector<DriverInstance*> polled CANELE_LOCKED;  ///< memory instances in use
  std::atomic<bool> memory_in_use{false};             ///< another rank is reached through memory
  std::atomic<int> system_peers{0};                   ///< peers connected through system-call drivers
  std::atomic<int> connecting{0};                     ///< peers in contact, but not connected yet
  bool lacks_wakeup = false;                          ///< a driver without wake-up is open
  bool armed CANELE_LOCKED = false;                   ///< a thread sleeps on the drivers, or is about to
  Samples samples;                                    ///< what canele-perf sample has measured on this host
};

}  // namespace canele::comm
