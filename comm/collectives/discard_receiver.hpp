// SPDX-License-Identifier: BSD-3-Clause
//
// DiscardReceiver: receives and discards everything that is still sent to a session without a reader. The sender of a
// large message, or of any for which there is no memory, waits until a receive takes the message.
//
// Used by a group that has failed. Also used at the end of an engine, for groups that were destroyed before or never
// created here. A rank that still sends to them may get an error, but must not wait for a receive.
//
// Any thread calls start(), not under the engine's lock; after that, the threads that make progress run it.
//
// It ends only with the engine, which cancels its receive; until then it must neither move nor be freed. Creation
// of a group is local. So a rank that has given up may hear of a group for the first time while it waits for its own
// end. The sender would wait for that rank, and that rank for the sender.
#pragma once

#include <canele/canele.h>

#include <deque>

#include "comm/engine/engine.hpp"
#include "comm/state/under_lock.hpp"
#include "ltask/task.hpp"

namespace canele::comm::collectives {

class DiscardReceiver {
 public:
  DiscardReceiver() = default;
  DiscardReceiver(const DiscardReceiver&) = delete;
  DiscardReceiver& operator=(const DiscardReceiver&) = delete;

  /// Starts to discard. The session is open, and the program has posted no receive in it.
  void start(Session& session);

 private:
  void post();
  static void on_event(canele_request_t* request, unsigned events, void* argument);

  Session* session_ = nullptr;
  canele_request_t request_{};
};

/// For an engine that is about to wait for its end. Discards what is sent to groups that have nothing in progress,
/// destroyed or not, and to those that a peer announces from now on. Must outlive the engine.
class ShutdownDiscards {
 public:
  explicit ShutdownDiscards(Engine& engine);
  ShutdownDiscards(const ShutdownDiscards&) = delete;
  ShutdownDiscards& operator=(const ShutdownDiscards&) = delete;

 private:
  struct One : ltask::Task {
    DiscardReceiver receiver;
    Session* session = nullptr;
  };
  One& add(Session& session) CANELE_UNDER_LOCK;
  void on_session_announced(Session& session) CANELE_UNDER_LOCK;
  static void start(ltask::Task& task);

  std::deque<One> all_ CANELE_LOCKED;
};

}  // namespace canele::comm::collectives
