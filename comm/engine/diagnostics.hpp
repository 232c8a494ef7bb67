// SPDX-License-Identifier: BSD-3-Clause
//
// Diagnostics: where an engine reports hangs and a lack of memory.
//
// Under the engine's lock, except where a member says otherwise.
#pragma once

#include <canele/canele.h>

#include <atomic>

#include "comm/observe/hang_watch.hpp"

namespace canele::comm {

class Engine;

struct Diagnostics {
  void (*const check_hang)(Engine&);       ///< called when nothing has happened for a while; constant
  LastEvent watched_heartbeats{};          ///< when the worker's heartbeat moved last
  canele_hang_fn hang_callback = nullptr;  ///< receives hang reports; nullptr: the log
  void* hang_argument = nullptr;
  std::atomic<bool> told_of_no_memory{false};  ///< reported once for each time that memory runs out (any thread)
};

}  // namespace canele::comm
