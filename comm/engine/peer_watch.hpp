// SPDX-License-Identifier: BSD-3-Clause
//
// PeerWatch: tells the program which peers have ended.
//
// Used by failure.cpp and by the API, under the engine's lock. The task runs in any thread that makes progress: it
// takes the lock for each peer, and calls the program without it. One task at a time looks for peers that were not told
// yet.
#pragma once

#include <canele/job.h>

#include "comm/state/under_lock.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

class Engine;

struct PeerWatch : ltask::Task {
  canele_peer_fn callback = nullptr;
  void* argument = nullptr;
  Engine* engine = nullptr;
  bool submitted = false;  ///< the task waits, or runs
};

/// Submits the task if the program wants to know of ends.
void tell_of_ends(Engine& engine) CANELE_UNDER_LOCK;

}  // namespace canele::comm
