// SPDX-License-Identifier: BSD-3-Clause
//
// Drain: takes all that is still sent to a session which nobody reads any more, and drops it. A large message, or any
// for which there is no memory, has a sender that waits until a receive takes it.
//
// Who: a group that is over; the end of an engine, for groups that were destroyed before: an error may be told to them.
// Threads: start() by any, not under the lock; then whoever makes progress.
// Surprise: it ends with the engine only, which cancels its receive; until then it must neither move nor be freed.
#pragma once

#include <canele/canele.h>

#include <deque>

#include "comm/core/engine.hpp"

namespace canele::comm::collectives {

class Drain {
 public:
  Drain() = default;
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  /// The session is open, and no receive of the program is posted in it.
  void start(Session& session);

 private:
  void post();
  static void told(canele_request_t* request, unsigned events, void* argument);

  Session* session_ = nullptr;
  canele_request_t request_{};
};

/// The engine is about to wait for its end: drains the groups that have nothing under way, destroyed or not. What is
/// returned must outlive the engine.
std::deque<Drain> drain_idle_groups(Engine& engine);

}  // namespace canele::comm::collectives
