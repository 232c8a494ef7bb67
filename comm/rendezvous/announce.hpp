// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the request to send (RTS) of a large message: names the send, and describes its memory if the peer may read
// it.
//
// Called by the thread that holds the engine's lock, when the packet is written.
#pragma once

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::rendezvous {

/// Writes a request to send, and returns its end. A blocked send is written as a blocked envelope instead. The type of
/// the head is set here. A driver that registers memory only when it gets the packet needs `chunk.staged`.
/// `remote_rtr`: the RTR of the receive that the message is for, else nullptr.
std::byte* write_rts(Context& context, Peer& peer, Request& request, const ChunkToWrite& chunk,
                     const RtrTable::RemoteRtr* remote_rtr) CANELE_UNDER_LOCK;

}  // namespace canele::comm::rendezvous
