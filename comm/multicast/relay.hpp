// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half of a multicast: asking for the data, and handing it on while it comes. See state.hpp for the
// picture.
//
// Any thread may call these functions, under the engine's lock. The callers are engine/dispatch.cpp, rendezvous/
// (through Sink), and the end of a peer.
//
// A rank hands on data that it has not completely received. It comes from the user's buffer as that fills, or, if there
// is no receive yet, from memory of the engine (Stock). A rank that cannot be served is told so, and asks the root. So
// nothing that waits here can hold up another rank.
#pragma once

#include <span>

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::multicast {

/// Handles the envelope of a multicast. Returns nullptr, or what is wrong with it.
const char* on_cast(Context& context, Peer& root, const wire::Head& head, std::span<const std::byte> payload);
Cast* find(Context& context, int root, std::uint32_t id);

/// Handles that no receive will ever take the message. The root hears `reason`, and the ranks that we serve turn to the
/// root. If the data is being fetched for them already, the root hears the end of that instead. The Cast may be gone
/// afterwards.
void refused(Context& context, Cast& cast, int reason);
const char* on_want(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_served(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_elsewhere(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);

/// Handles that a forward has sent all that it could.
void paused(Context& context, Request& forward);

/// Handles that a peer is gone.
void gone(Context& context, const Peer& peer);

}  // namespace canele::comm::multicast
