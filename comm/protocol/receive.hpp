// SPDX-License-Identifier: BSD-3-Clause
//
// The receive path: from a driver's packet to the user's memory. Read receive.cpp top-down: packet, chunk,
// envelope, match, deliver.
//
// Any thread may call these functions, under the engine's lock.
//
// Every length in a packet is checked before use, and read once: the packet may be memory that the peer still writes.
#pragma once

#include <span>

#include "comm/engine/engine.hpp"

namespace canele::comm::receive_path {

/// An answer of chunks(), and of packet() in receive_eager.hpp: there is no memory for the next chunk now. Nothing is
/// lost. The packet is to be presented again, and is then parsed from where it was left.
extern const char try_later[];

/// Does step 2 for the chunks of a packet, its number taken off. Returns nullptr, or what is wrong with the packet.
/// *done is the number of its bytes that were parsed in an earlier call; the call resets it to 0, unless it returns
/// try_later.
const char* chunks(Engine& engine, Peer& peer, std::span<const std::byte> bytes, std::size_t* done);

/// Takes a posted receive: it gets an unexpected message, or waits.
void accept(Engine& engine, Request& request);
/// Continues an unbound receive (canele_irecv_late) that has got its buffer.
void bind(Engine& engine, Request& request);
void cancel(Engine& engine, Request& request);
/// Takes a posted receive without a message out of the tables. An offer of it to its sender is void from then on.
void take_out(Engine& engine, Request& request);
/// Ends the posted receives that only `source` can serve. rank_any: ends all that are posted.
void end_posted(Engine& engine, int source, int error);
void probe(Engine& engine, ProbeOp& op);

/// Releases the memory of a message that is needed no longer. Its sender may send as much again.
void discard(Engine& engine, Message& message);

/// Gives `request` the message that it has matched: copies it, or starts the rendezvous, or holds it for a late
/// receive.
void give(Engine& engine, Request& request, Message& message);

/// Ends a receive that has met its message, but did not get all of it.
void failed(Engine& engine, Request& request, int error);

/// Ends a receive that has its data: counts, fault switch, status.
void delivered(Engine& engine, Request& request, Peer& peer, std::uint64_t delivered_bytes);

}  // namespace canele::comm::receive_path
