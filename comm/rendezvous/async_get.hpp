// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous get by a driver that makes system calls (libfabric). The sender's memory is exposed when the RTS is
// handed over. The holder of the receiving driver's gate reads it, several pieces at a time.
//
// expose() and serve() are called by the thread that holds the gate, outside the engine's lock. All other functions are
// called under the lock. Such a driver reports everything from inside poll(), so the thread that handles its packets
// holds the gate, too.
//
// Registering memory may take a system call. So the place for the exposure is kept free in the RTS, and is filled in
// outside the lock.
//
//   write_rts ─▶ Packet::late ─▶ (flush) expose ─▶ … FIN ─▶ withdrawals ─▶ (serve) withdraw
//   start ─▶ slot.pulls ─▶ (serve) remote_copy × outstanding ─▶ piece_done ─▶ … ─▶ pulled
#pragma once

#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::fetch {

/// Returns the bytes to keep free in an RTS for the exposure. 0: the driver cannot expose memory, or not this memory.
std::size_t room(const Rail& rail, const Request& request);
/// Notes what expose() has to do for the RTS at `rts_at`, which keeps `room` free.
void expose_later(Packet& packet, Request& request, std::byte* rts_at, std::span<std::byte> room);
/// Exposes the memory of the packet's RTSs, and writes the exposures into them.
void expose(DriverSlot& slot, int rank, Packet& packet);
/// Ends the exposure of a send that is over.
void withdraw(const Peer& peer, Request& request);

/// Begins a pull.
void submit(DriverSlot& slot, rendezvous::Pull& pull);
/// Issues pieces of pulls that wait for it, and ends exposures. Returns how much it did.
int serve(DriverSlot& slot);
/// Handles that the driver has fetched a piece.
void piece_done(DriverSlot& slot, rendezvous::Pull& pull, drivers::Status status);
/// Drops the pieces that this driver was fetching from a peer that is gone.
void drop(Context& context, const Peer& peer, DriverSlot& slot);

}  // namespace canele::comm::fetch
