// SPDX-License-Identifier: BSD-3-Clause
//
// Adverts: a large receive tells its sender where the data may go, before there is anything to send. A sender that
// then waits, or has a worker, writes the data there itself, so that a receiver that computes still gets it.
//
//   receiver                                   sender
//   post ─▶ offer: rtr(claims, exposure) ─────▶ on_rtr: kept
//                                               an envelope for it is written: consume ─▶ take
//   on_bound: it is this receive ◀──── rts ────┤
//   copies chunks (get) ─┐                      └─▶ copies chunks (put), when it next waits
//                        └── the one that ends the last chunk tells the other: fin, or placed
//
// A message whose receive was not offered is shared when the two have met:
//
//   share: share(send, claims, exposure) ──────▶ on_share
//   copies chunks (get), from the front           copies chunks (put), from the back
//
// While there is no line for it, it waits for one: the first messages are then complete sooner.
//
// Who: send_path, receive_path.
// Threads: under the engine's lock.
// Surprise: matching is not bent. Only a receive that is the next to match for its (session, tag, source), with no
//     wildcard beside it, is offered; of envelopes under way that could be for it the first takes it, or the sender
//     forgets it; and cancelling and sending decide by one compare-and-swap who was first (Claims).
#pragma once

#include <span>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::advert {

/// Shorter receives are not worth an advert.
inline constexpr std::size_t least = 32 * 1024;

/// Does this message move faster if either end may copy it? The peer is connected.
bool pays(const Engine& engine, const Peer& peer, const Request& request);
/// A receive from `peer` has just been queued: offers it, if that can help.
void offer(Engine& engine, Request& request, Peer& peer);
/// The offer no longer holds: the receive has matched, or is cancelled. False: its sender has taken it.
bool withdraw(Engine& engine, Request& request);
/// The offer is over: its line may serve again.
void forget(Engine& engine, Request& request);
/// None if the receive is not offered.
Claims claims_of(const Peer& peer, const Request& request);

/// Nothing more is sent in the session: offers of receives in it are of no use.
void forget_session(Engine& engine, const Session& session);
const char* on_rtr(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);

/// An envelope for (session, tag) is being written. True: it is for this receive of the peer, which forgets its offer.
bool consume(Engine& engine, Peer& peer, const Session& session, std::uint64_t tag, Adverts::Theirs* offered);

/// A receive that was not offered has met the announcement of this send. True: both ends copy. False: this one must.
bool share(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure);
const char* on_share(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);

/// The announcement of a message for a receive that was offered.
const char* on_bound(Engine& engine, Peer& peer, const Session& session, const wire::Head& head, const wire::Rts& rts,
                     std::span<const std::byte> exposure);

/// The announcement of a message, and the offered receive that it has met in the table. False: the offer no longer
/// holds. True: the sender has taken it after it had sent this, so both copy.
bool withdraw_or_bind(Engine& engine, Peer& peer, Request& request, const wire::Head& head, const wire::Rts& rts,
                      std::span<const std::byte> exposure);

}  // namespace canele::comm::advert
