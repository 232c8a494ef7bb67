// SPDX-License-Identifier: BSD-3-Clause
//
// Bundle: a group of rails to one peer. Packets are numbered, kept until they are acknowledged, and put in order again.
// They are sent once more over another rail when theirs dies. state/rail_group.hpp has the picture.
//
// Any thread may call these functions, under the engine's lock.
//
// Bulk data is not numbered. It stays on one rail. If that rail dies, the sender says so (`again`), and the receiver
// grants what is missing under a new key. So late bytes of the old rail find no transfer.
#pragma once

#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::bundle {

/// Begins to number the packets to a peer that is reached by several rails from now on.
void begin(const Context& context, Peer& peer, std::size_t group);

/// Gives packets to every rail that takes one. It takes the place of send_path's pump for a peer whose packets are
/// numbered.
void pump(Context& context, Peer& peer);

/// Takes a packet whose first chunk is `numbered`, and parses it in its turn. Returns nullptr, or what is wrong with
/// it.
const char* arrived(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> rest);

/// Handles that the peer has all numbered packets up to this one. Returns nullptr, or what is wrong with that.
const char* seen(Peer& peer, std::uint64_t upto);

/// Tells the peer by each rail, after our bye, that the end of the rail is no loss. One rail may end before the peer
/// reads the bye that went by another.
void leave(Context& context, Peer& peer);
/// Returns whether the peer was told that by each rail, or need not be.
bool has_left(const Peer& peer);

/// Sends again what was on a rail that has died, while others live.
void rail_lost(Context& context, Peer& peer, Rail& rail);

/// Handles that the rail's driver has given its packet back after the rail died.
void take_back(Context& context, Rail& rail);

}  // namespace canele::comm::bundle
