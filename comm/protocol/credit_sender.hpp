// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half: sends without credit are blocked here, in order, and are advertised when the
// receiver solicits them. See state/credit.hpp for the picture, and credit_receiver.hpp for the other half.
//
//   admit ─▶ consume_credit ─┬─ credit ─────────────────▶ backlog
//                            └─ none ─▶ blocked ─┬─ on_credit ──▶ backlog (from the front)
//                                                └─ on_solicit ─▶ blocked envelopes, 64 at a time ─▶ on_blocked_reply
//
// Any thread may call these functions, under the engine's lock.
//
// A blocked send can leave in two ways. By credit it leaves from the front, as any message. By a blocked envelope it
// leaves from anywhere, because a receive waits for it that older sends do not fit. Both ways are needed. Only then is
// nothing lost, nothing stored beyond the limit, and no program hung that waits for its last message first.
#pragma once

#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::credit_sender {

/// Decides whether the envelope of this send may leave. True: it is paid for, with rendezvous set if only that could be
/// paid. False: the send is blocked.
bool consume_credit(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;

/// Handles that the receiver has granted `total` since the connection. Returns the verdict on that.
Verdict on_credit(Context& context, Peer& peer, std::uint64_t total) CANELE_UNDER_LOCK;
/// Handles a solicitation of a receiver that has posted a receive, or has probed. What fits is advertised, the oldest
/// first; or everything, if it asks so.
Verdict on_solicit(Context& context, Peer& peer, const wire::Head& head,
                   std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_blocked_reply(Context& context, Peer& peer, std::uint64_t mask, std::uint32_t batch) CANELE_UNDER_LOCK;

/// Returns the blocked envelope of this send.
wire::BlockedEnvelope describe(const Peer& peer, const Request& request);

/// Handles that the receiver has taken a blocked send. The receiver says so by a cts or a fin, before the reply.
void taken(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;

/// Ends blocked sends with the error of their peer, which is disconnected. Those whose blocked envelope is queued or in
/// a packet end later.
void drop(Context& context, Peer& peer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::credit_sender
