// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half: sends without credit are withheld here, in order, and are offered when the receiver
// asks. See state/credit.hpp for the picture, and credit_receiver.hpp for the other half.
//
//   accept ─▶ admit ─┬─ credit ──────────────────────────▶ backlog
//                    └─ none ─▶ withheld ─┬─ on_credit ──▶ backlog (from the front)
//                                         └─ on_resume ──▶ offers, 64 at a time ─▶ on_answer: taken, or withheld still
//
// Any thread may call these functions, under the engine's lock.
//
// A withheld send can leave in two ways. By credit it leaves from the front, as any message. By an offer it leaves from
// anywhere, because a receive waits for it that older sends do not fit. Both ways are needed. Only then is nothing
// lost, nothing stored beyond the limit, and no program hung that waits for its last message first.
#pragma once

#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::flow_out {

/// Decides whether the envelope of this send may leave. True: it is paid for, with rendezvous set if only that could be
/// paid. False: the send is withheld.
bool admit(Context& context, Peer& peer, Request& request);

/// Handles that the receiver has granted `total` since the connection. Returns nullptr, or what is wrong with that.
const char* on_credit(Context& context, Peer& peer, std::uint64_t total);
/// Handles a question of a receiver that has posted a receive, or has probed. What fits is offered, the oldest first;
/// or everything, if it asks so.
const char* on_resume(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_answer(Context& context, Peer& peer, std::uint64_t mask, std::uint32_t batch);

/// Returns what the offer of this send says of itself.
wire::Offer describe(const Peer& peer, const Request& request);

/// Handles that the receiver has taken a withheld send. The receiver says so by a cts or a fin, before the answer.
void taken(Context& context, Peer& peer, Request& request);

/// Ends withheld sends with the error of their peer, which is gone. Those whose offer is queued or in a packet end
/// later.
void drop(Context& context, Peer& peer);

}  // namespace canele::comm::flow_out
