// SPDX-License-Identifier: BSD-3-Clause
//
// Drain: takes all that is still sent to a session which nobody reads any more, and drops it. A large message, or any
// for which there is no memory, has a sender that waits until a receive takes it.
//
// Who: a group that is over; the end of an engine, for groups that were destroyed before, or never made here: who still
//     sends to them may be told an error, but must not wait for a receive.
// Threads: start() by any, not under the lock; then whoever makes progress.
// Surprise: it ends with the engine only, which cancels its receive; until then it must neither move nor be freed.
//     Groups are local when made: a rank that has given up may hear of one for the first time while it waits for its
//     end, and its sender would wait for it, as it does for its sender.
#pragma once

#include <canele/canele.h>

#include <deque>

#include "comm/core/engine.hpp"
#include "ltask/task.hpp"

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

/// Of an engine that is about to wait for its end: the groups that have nothing under way, destroyed or not, and those
/// that a peer mentions from now on. Must outlive the engine.
class LastDrains {
 public:
  explicit LastDrains(Engine& engine);
  LastDrains(const LastDrains&) = delete;
  LastDrains& operator=(const LastDrains&) = delete;

 private:
  struct One : ltask::Task {
    Drain drain;
    Session* session = nullptr;
  };
  One& add(Session& session);
  void mentioned(Session& session);
  static void start(ltask::Task& task);

  std::deque<One> all_;  ///< under the engine's lock
};

}  // namespace canele::comm::collectives
