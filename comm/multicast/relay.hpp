// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half of a multicast: asking for the data, and handing it on while it comes. See state.hpp for the
// picture.
//
// Any thread may call these functions, under the engine's lock. The callers are protocol/, rendezvous/, and the end of
// a peer.
//
// A rank hands on data that it has not completely received. It comes from the user's buffer as that fills, or, if there
// is no receive yet, from memory of the engine (Stock). A rank that cannot be served is told so, and asks the root. So
// nothing that waits here can hold up another rank.
#pragma once

#include <span>

#include "comm/engine/engine.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::multicast {

/// A route as it came.
struct Announced {
  wire::Route route;
  std::span<const std::byte> serves;  ///< ranks, four bytes each
};

/// Reads the route of an envelope from `root`. Returns nullptr, or what is wrong with it.
const char* take_route(Engine& engine, const Peer& root, std::span<const std::byte>& payload, Announced& out);
/// Notes the envelope of a multicast that has come, and has been matched. Returns its Cast.
Cast& announced(Engine& engine, Peer& root, const Announced& announced, const wire::Rts& rts, Session& session);
Cast* find(Engine& engine, int root, std::uint32_t id);

/// Serves the ranks that asked before the envelope came, when the message is kept.
void serve_waiting(Engine& engine, Cast& cast);
/// Handles that no receive will ever take the message. The root hears `reason`, and the ranks that we serve turn to the
/// root. If the data is being fetched for them already, the root hears the end of that instead. The Cast may be gone
/// afterwards.
void refused(Engine& engine, Cast& cast, int reason);
/// Handles that a receive with a buffer meets the message. Returns true if there is a stock: all that is left is then
/// done here.
bool bound(Engine& engine, Request& request, Cast& cast);
/// Returns the peer to ask for the data.
Peer& source_of(Engine& engine, const Cast& cast);
/// Asks for [offset, expected) of the data, as `request.handle`.
void want(Engine& engine, Request& request, Peer& server, std::uint64_t offset);
/// advanced() handles that a stream for this request has come further, fetched() that it has ended.
void advanced(Engine& engine, Request& request);
void fetched(Engine& engine, const Request& request, Peer& from);
/// Handles that the receive has all that it wanted, or will never have it. The receive is finalized as soon as no
/// forward reads its memory.
void received(Engine& engine, Request& request, int outcome);
/// Asks the server for the data again, or the root if the server is gone. No driver may write the data any more.
void ask_again(Engine& engine, Request& request);

const char* on_want(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_served(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_elsewhere(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);

/// Handles that a forward has sent all that it could.
void paused(Engine& engine, Request& forward);

/// Handles that a peer is gone.
void gone(Engine& engine, const Peer& peer);

}  // namespace canele::comm::multicast
