// SPDX-License-Identifier: BSD-3-Clause
//
// Shared copies: both ends of a large message copy chunks of it, whichever has time. The end that ends the last chunk
// tells the other. An end copies its receives before its sends: in an exchange each end then has its own data in its
// cache.
//
// Any thread may call these functions, under the engine's lock. Only the copying task runs outside it.
//
// A request may end before the task of its own end does. So the task names the request by handle. It touches the
// memory of the request only while it holds a claim: the transfer does not end until that claim is given back.
#pragma once

#include <span>

#include "comm/rendezvous/rendezvous.hpp"

namespace canele::comm::shared_copy {

/// Receiver: starts to copy, when the message of a receive with an RTR is announced.
void receive(Context& context, Request& request, Peer& peer, ChunkClaims claims,
             std::span<const std::byte> rkey) CANELE_UNDER_LOCK;
/// Sender: prepares to copy, when the message for a receive whose RTR this end has acquired is being announced. The
/// copy begins when a thread makes progress: posting a send does not wait for it.
void send(Context& context, Request& request, Peer& peer, ChunkClaims claims,
          const RtrTable::RemoteRtr& remote_rtr) CANELE_UNDER_LOCK;

/// Submits the copies of announced sends as tasks for the threads that make progress now.
void start_deferred(Context& context) CANELE_UNDER_LOCK;

/// Handles that the task of this end has nothing left to copy.
void copy_finished(Context& context, rendezvous::RmaCopy& copy) CANELE_UNDER_LOCK;

/// Handles that the sender has ended the last chunk.
Verdict on_copy_done(Context& context, Peer& peer, Handle key) CANELE_UNDER_LOCK;

}  // namespace canele::comm::shared_copy
