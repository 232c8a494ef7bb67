// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half of a multicast: asking for the data, and handing it on while it comes. See casts.hpp for the
// picture.
//
// Who: receive_path, rendezvous, send_path, the end of a peer. Threads: under the engine's lock.
// Surprise: a rank hands on what it has not received yet: from the user's buffer as it fills, or, if there is no
//     receive yet, from memory of its own (Stock). Whoever cannot be served is told so, and asks the root. So nothing
//     that waits here can hold up anybody.
#pragma once

#include <span>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::multicast {

/// A route as it came.
struct Announced {
  wire::Route route;
  std::span<const std::byte> serves;  ///< ranks, four bytes each
};

/// Reads the route of an envelope from `root`. nullptr, or what is wrong with it.
const char* take_route(Engine& engine, const Peer& root, std::span<const std::byte>& payload, Announced& out);
/// An envelope has come, and has been matched: the Cast of it.
Cast& announced(Engine& engine, Peer& root, const Announced& announced, const wire::Rts& rts, Session& session);
Cast* find(Engine& engine, int root, std::uint32_t id);

/// Its message is kept: who has asked before it came gets the data all the same.
void serve_waiting(Engine& engine, Cast& cast);
/// No receive will ever take the message: the root hears `reason`, and those that we serve turn to it. Where the data
/// is fetched for them already the root hears the end of that. The Cast may be gone afterwards.
void refused(Engine& engine, Cast& cast, int reason);
/// A receive with a buffer meets the message. True: all that is left is done here (there is a stock).
bool bound(Engine& engine, Request& request, Cast& cast);
/// Whom to ask for the data.
Peer& source_of(Engine& engine, const Cast& cast);
/// Asks for [offset, expected) of the data, as `request.handle`.
void want(Engine& engine, Request& request, Peer& server, std::uint64_t offset);
/// A stream for this request has come further, or has ended.
void advanced(Engine& engine, Request& request);
void fetched(Engine& engine, const Request& request, Peer& from);
/// The receive has all that it wanted, or will never have it. It is finalized as soon as nobody reads its memory.
void received(Engine& engine, Request& request, int outcome);
/// The data is to be asked for again, of the server or, if that is gone, of the root: nobody writes to it any more.
void ask_again(Engine& engine, Request& request);

const char* on_want(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_served(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);
const char* on_elsewhere(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload);

/// A forward has sent all that it could.
void paused(Engine& engine, Request& forward);

/// A peer is gone.
void gone(Engine& engine, const Peer& peer);

}  // namespace canele::comm::multicast
