// SPDX-License-Identifier: BSD-3-Clause
//
// Rejection: this rank lets go of messages that no receive has taken, and tells each sender that still waits for one.
//
// Any thread may call these functions, under the engine's lock. They serve session close, groups with failed
// collectives, and canele_finalize.
//
// The sender of an eager message waits for nothing: the message is dropped, and its credit goes back. The sender of a
// large or synchronous message hears a reason, and its request ends with that.
//
//   rendezvous ─▶ fin (reason)        synchronous ─▶ ack (reason)        multicast ─▶ fin (reason) to the root,
//                                                                        multicast_redirect to the children
#pragma once

#include <string>

#include "comm/state/context.hpp"

namespace canele::comm::rejection {

/// What was dropped.
struct Dropped {
  std::size_t count = 0, rejected = 0;  ///< messages; those among them whose sender has been told
  // The message that came first.
  int source = -1;
  std::uint64_t tag = 0, length = 0, post_order = 0;
};

/// Lets go of a message that is in no table. If its sender waits, it hears `reason` (CANELE_E...).
void reject(Context& context, Message& message, int reason) CANELE_UNDER_LOCK;

/// Lets go of all messages of the session that no receive has taken.
Dropped drop_all(Context& context, Session& session) CANELE_UNDER_LOCK;

/// Discards one message of the session that no receive has taken. If its sender waits, it hears that the message was
/// delivered.
void discard_one(Context& context, Session& session, Message& message) CANELE_UNDER_LOCK;

/// Says in the log what a session dropped, if it dropped anything.
void report(Context& context, const Session& session, const Dropped& dropped);

/// Lets go of leftovers while the engine is being finalized: no thread of the program posts or binds any more. These
/// are messages that came before `post_order`, and that wait for a receive, or for the buffer of an unbound receive. A
/// session that has dropped messages in this way drops later ones as they come. (What a registered handler or a discard
/// receiver of a group will take is left alone.)
void drop_leftovers(Context& context, std::uint64_t post_order) CANELE_UNDER_LOCK;

}  // namespace canele::comm::rejection
