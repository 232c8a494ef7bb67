// SPDX-License-Identifier: BSD-3-Clause
//
// Adverts (ready to receive, RTR): a large receive tells its sender where the data may go, before there is anything to
// send. A sender that then waits, or has a worker, writes the data there itself. So a receiver that computes still gets
// its data.
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
// While no line is free for it, the receive waits for one: the first messages are then complete sooner.
//
// Any thread may call these functions, under the engine's lock.
//
// Matching follows the same rules as without adverts. Only a receive that is the next to match for its (session, tag,
// source) is offered, and only with no wildcard beside it. Of the envelopes under way that could be for an offered
// receive, the first takes it, or the sender forgets the offer. Cancelling and sending decide by one compare-and-swap
// which of them was first (Claims).
#pragma once

#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::advert {

/// Returns whether this message moves faster if either end may copy it. The peer is connected.
bool pays(const Context& context, const Peer& peer, const Request& request);
/// Offers a receive that has just been queued to `peer`, its sender, if that can help.
void offer(Context& context, Request& request, Peer& peer);
/// Takes an offer back: the receive has matched, or is cancelled. Returns false if the sender has taken the offer.
bool withdraw(Context& context, Request& request);
/// Ends an offer: its line may serve again.
void forget(Context& context, Request& request);
/// Returns the claims of an offered receive. None if the receive is not offered.
Claims claims_of(const Peer& peer, const Request& request);

/// Drops the peers' offers in a session in which nothing more is sent.
void forget_session(Context& context, const Session& session);
const char* on_rtr(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);

/// Shares the copy of a send whose announcement has met a receive that was not offered. Returns true if both ends copy,
/// false if this end has to copy alone.
bool share(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure);
const char* on_share(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);

/// Handles the announcement of a message for a receive that was offered.
const char* on_bound(Context& context, Peer& peer, const Session& session, const wire::Head& head, const wire::Rts& rts,
                     std::span<const std::byte> exposure);

/// Handles the announcement of a message that has met an offered receive in the table. Returns false if the offer no
/// longer holds. Returns true if both ends copy: the sender has taken the offer after it had sent the announcement.
bool withdraw_or_bind(Context& context, Peer& peer, Request& request, const wire::Head& head, const wire::Rts& rts,
                      std::span<const std::byte> exposure);

}  // namespace canele::comm::advert
