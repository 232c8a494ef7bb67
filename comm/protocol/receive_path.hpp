// SPDX-License-Identifier: BSD-3-Clause
//
// The way in: from a driver's packet to the user's memory. Read receive_path.cpp top-down: packet, chunk, envelope,
// match, deliver.
//
// Who: the engine's lock holder.
// Threads: under the engine's lock.
// Surprise: every length in a packet is checked before use, and read once: the packet may be memory that the peer
//     still writes.
#pragma once

#include <span>

#include "comm/core/engine.hpp"

namespace canele::comm::receive_path {

/// An answer of chunks(), and of packet() in eager_in.hpp: there is no memory for the next chunk now. Nothing is lost:
/// the packet is to be presented again, and goes on where it was left.
extern const char try_later[];

/// Step 2 for the chunks of a packet, its number taken off: nullptr, or what is wrong with it. *done: how many of its
/// bytes are done already; 0 after.
const char* chunks(Engine& engine, Peer& peer, std::span<const std::byte> bytes, std::size_t* done);

/// A posted receive: takes an unexpected message, or waits.
void accept(Engine& engine, Request& request);
/// A late receive gets its buffer.
void bind(Engine& engine, Request& request);
void cancel(Engine& engine, Request& request);
/// A posted receive leaves the tables without a message; what its sender was offered holds no more.
void take_out(Engine& engine, Request& request);
/// Ends the posted receives that only `source` can serve; rank_any: all that are posted.
void end_posted(Engine& engine, int source, int error);
void probe(Engine& engine, ProbeOp& op);

/// A message is needed no longer: its memory is free again, and its sender may send as much.
void discard(Engine& engine, Message& message);

/// Gives the message that `request` has matched to it: copies, or starts the rendezvous, or holds it for a late
/// receive.
void give(Engine& engine, Request& request, Message& message);

/// A receive that has met its message ends without all of it.
void failed(Engine& engine, Request& request, int error);

/// The receive is over: counts, fault switch, status.
void delivered(Engine& engine, Request& request, Peer& peer, std::uint64_t delivered_bytes);

}  // namespace canele::comm::receive_path
