// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half: what has no credit stays here, in order, and is offered when the receiver asks. See
// core/credit.hpp for the picture, flow_in.hpp for the other half.
//
// Who: send_path, receive_path, rendezvous, the end of a peer. Threads: under the engine's lock.
// Surprise: a withheld send can leave in two ways: by credit, from the front, as any message; or by an offer, from
//     anywhere, because a receive waits for it that older ones do not fit. Only then is nothing lost, nothing stored
//     beyond the limit, and no program hung that waits for its last message first.
//
//   accept ─▶ admit ─┬─ credit ──────────────────────────▶ backlog
//                    └─ none ─▶ withheld ─┬─ on_credit ──▶ backlog (from the front)
//                                         └─ on_resume ──▶ offers, 64 at a time ─▶ on_answer: taken, or withheld still
#pragma once

#include <cstdint>
#include <span>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::flow_out {

/// May the envelope of this send leave? True: it is paid for (with rendezvous set, if only that could be). False: it is
/// withheld.
bool admit(Engine& engine, Peer& peer, Request& request);

/// The receiver has granted so much since the connection. nullptr, or what is wrong with that.
const char* on_credit(Engine& engine, Peer& peer, std::uint64_t total);
/// The receiver has posted a receive, or has probed: what fits is offered, the oldest first; or everything.
const char* on_resume(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_answer(Engine& engine, Peer& peer, std::uint64_t mask, std::uint32_t batch);

/// What an offer of this send says of itself.
wire::Offer describe(const Peer& peer, const Request& request);

/// The receiver has taken a withheld send, and says so by a cts or a fin before the answer.
void taken(Engine& engine, Peer& peer, Request& request);

/// The peer is gone: withheld sends end with its error, but for those whose offer is queued or in a packet.
void drop(Engine& engine, Peer& peer);

}  // namespace canele::comm::flow_out
