// SPDX-License-Identifier: BSD-3-Clause
//
// RTR (ready to receive): a large receive tells its sender where the data may go, before there is anything to
// send. A sender that then waits, or has a worker, writes the data there itself. So a receiver that computes still gets
// its data.
//
//   receiver                                   sender
//   post ─▶ send: rtr(claims, rkey) ─────▶ on_rtr: kept
//                                               an envelope for it is written: consume ─▶ take
//   on_claimed_rts: it is this receive ◀──── rts ────┤
//   copies chunks (get) ─┐                      └─▶ copies chunks (put), when it next waits
//                        └── the one that ends the last chunk tells the other: fin, or copy_done
//
// A message whose receive has no RTR is shared when the two have met:
//
//   share: shared_copy(send, claims, rkey) ▶ on_shared_copy
//   copies chunks (get), from the front           copies chunks (put), from the back
//
// While no line is free for it, the receive waits for one: the first messages are then complete sooner.
//
// Any thread may call these functions, under the engine's lock.
//
// Matching follows the same rules as without RTRs. Only a receive that is the next to match for its (session, tag,
// source) gets an RTR, and only with no wildcard beside it. Of the envelopes under way that could be for such a
// receive, the first takes it, or the sender forgets the RTR. Cancelling and sending decide by one compare-and-swap
// which of them was first (ChunkClaims).
#pragma once

#include <span>

#include "comm/rendezvous/parsed_rts.hpp"
#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::rtr {

/// Returns whether either end can copy the data of a receive from this peer.
bool shares(const Context& context, const Peer& peer);
/// Returns whether this end alone copies. It does so if all threads of the program want cores, and the copy takes less
/// than a scheduler's turn. The other end would wake up for it. A thread that copies for longer loses its turn
/// meanwhile, and so does a thread that waits for that copy.
bool copies_alone(const Context& context, std::uint64_t length);
/// Returns whether a message of this peer that is shared has a line, or will soon have one.
bool has_line(const Peer& peer);
/// Sends the RTR of a receive that has just been queued to `peer`, its sender, if that can help.
void send(Context& context, Request& request, Peer& peer) CANELE_UNDER_LOCK;
/// Withdraws an RTR: the receive has matched, or is cancelled. Returns false if the sender has acquired it.
bool withdraw(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Ends an RTR: its line may serve again.
void forget(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Returns the claims of a receive with an RTR. None if it has no RTR.
ChunkClaims claims_of(const Peer& peer, const Request& request);

/// Drops the peers' RTRs in a session in which nothing more is sent.
void forget_session(Context& context, const Session& session) CANELE_UNDER_LOCK;
Verdict on_rtr(Context& context, Peer& peer, const wire::Head& head,
               std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// Shares the copy of a send whose announcement has met a receive without an RTR, after choose_for_receive() has
/// chosen so. Returns false if the receive has too many pieces for its sender; this end has to copy alone then.
bool share(Context& context, Request& request, Peer& peer, const rendezvous::RemoteSource& source) CANELE_UNDER_LOCK;
Verdict on_shared_copy(Context& context, Peer& peer, Handle handle,
                       std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// Handles the announcement of a message whose sender has acquired the RTR of its receive.
Verdict on_claimed_rts(Context& context, Peer& peer, const Session& session,
                       const rendezvous::ParsedRts& parsed) CANELE_UNDER_LOCK;

/// Handles the announcement of a message that has met a receive with an RTR in the table. Returns false if the RTR no
/// longer holds. Returns true if both ends copy: the sender has acquired the RTR after it had sent the announcement.
bool withdraw_or_share(Context& context, Peer& peer, Request& request,
                       const rendezvous::ParsedRts& parsed) CANELE_UNDER_LOCK;

}  // namespace canele::comm::rtr
