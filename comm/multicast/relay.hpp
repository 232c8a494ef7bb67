// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half of a multicast: requesting the data, and forwarding it while it comes. See state.hpp for the
// picture.
//
// Any thread may call these functions, under the engine's lock. The callers are engine/dispatch.cpp, rendezvous/
// (through Sink), and the end of a peer.
//
// A rank forwards data that it has not completely received. The data comes from the user's buffer as that fills, or, if
// there is no receive yet, from memory of the engine (RelayBuffer). A child that cannot get the data here is redirected
// to the root. So nothing that waits here can hold up another rank.
#pragma once

#include <span>

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::multicast {

/// Handles the envelope of a multicast. Returns the verdict on it.
Verdict on_multicast_rts(Context& context, Peer& root, const wire::Head& head,
                         std::span<const std::byte> payload) CANELE_UNDER_LOCK;
IncomingMulticast* find(Context& context, int root, std::uint32_t id) CANELE_UNDER_LOCK;

/// Handles that no receive will ever take the message. The root gets `reason`, and the children are redirected to
/// the root. If the data is being fetched for them already, the root gets the outcome of that instead. `incoming` may
/// no longer exist afterwards.
void on_rejected(Context& context, IncomingMulticast& incoming, int reason) CANELE_UNDER_LOCK;
Verdict on_multicast_cts(Context& context, Peer& peer, const wire::Head& head,
                         std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_multicast_done(Context& context, Peer& peer, const wire::Head& head,
                          std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_multicast_redirect(Context& context, Peer& peer, const wire::Head& head,
                              std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// Handles that a child send has sent all that is available.
void on_available_sent(Context& context, Request& send) CANELE_UNDER_LOCK;

/// Handles that a peer is disconnected.
void on_disconnected(Context& context, const Peer& peer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::multicast
