// SPDX-License-Identifier: BSD-3-Clause
//
// Several rails to one peer: packets are numbered, kept until they are acknowledged, put in order again, and sent once
// more over another rail when theirs dies. core/bundle.hpp has the picture.
//
// Who: send_path, receive_path, peers; under the engine's lock.
// Threads: under the engine's lock.
// Surprise: bulk data is not numbered. It stays on one rail; if that dies, the sender says so (`again`) and the
//     receiver grants what is missing under a new key, so that late bytes of the old rail find nothing.
#pragma once

#include <span>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::bundle {

/// The peer is reached by several rails from now on: what is sent is numbered.
void begin(const Engine& engine, Peer& peer, std::size_t group);

/// Gives packets to every rail that takes one. The pump of a peer whose packets are numbered.
void pump(Engine& engine, Peer& peer);

/// A packet whose first chunk is `numbered`: parsed in its turn. nullptr, or what is wrong with it.
const char* arrived(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> rest);

/// The peer has all numbered packets up to this one. nullptr, or what is wrong with that.
const char* seen(Peer& peer, std::uint64_t upto);

/// We have said bye: the peer hears by each rail that its end is no loss. One rail may end before the bye is read that
/// went by another.
void leave(Engine& engine, Peer& peer);
/// It has heard that, or need not.
bool has_left(const Peer& peer);

/// One rail has died, others live: what was on it goes again.
void rail_lost(Engine& engine, Peer& peer, Rail& rail);

/// The rail's driver has given its packet back after the rail died.
void take_back(Engine& engine, Rail& rail);

}  // namespace canele::comm::bundle
