// SPDX-License-Identifier: BSD-3-Clause
//
// RailGroup: a group of rails to one peer. Packets are sequenced, kept until they are acknowledged, and put in order
// again. They are retransmitted over another rail when theirs fails. state/rail_group.hpp has the picture.
//
// Any thread may call these functions, under the engine's lock.
//
// Bulk data is not sequenced. Every rail that becomes idle takes the next slice, as the strategy says. If a rail fails,
// the sender says so (`regrant`), and the receiver grants what follows the first gap under a new key. So late bytes of
// the old grant find no transfer.
#pragma once

#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::sequencing {

/// Begins to sequence the packets to a peer that is reached by several rails from now on.
void begin(const Context& context, Peer& peer, std::size_t group);

/// Gives packets to every rail that takes one. It takes the place of send_path::flush() for a peer whose packets
/// are sequenced.
void flush(Context& context, Peer& peer) CANELE_UNDER_LOCK;

/// Accepts a packet whose first chunk is `sequenced`, and parses it in its turn. Returns the verdict on
/// it.
Verdict accept_sequenced(Context& context, Peer& peer, const wire::Head& head,
                         std::span<const std::byte> rest) CANELE_UNDER_LOCK;

/// Handles that the peer has all sequenced packets up to this one. Returns the verdict on that.
Verdict on_cumulative_ack(Peer& peer, std::uint64_t upto);

/// Tells the peer by each rail, after our bye, that the end of the rail is no loss. One rail may end before the peer
/// reads the bye that went by another.
void close_rails(Context& context, Peer& peer) CANELE_UNDER_LOCK;
/// Returns whether the peer was told that by each rail, or need not be.
bool rails_closed(const Peer& peer);

/// Retransmits what was on a rail that has failed, while others are up.
void rail_lost(Context& context, Peer& peer, Rail& rail) CANELE_UNDER_LOCK;

/// Handles that the rail's driver has given its packet back after the rail died.
void take_back(Context& context, Rail& rail) CANELE_UNDER_LOCK;

}  // namespace canele::comm::sequencing
