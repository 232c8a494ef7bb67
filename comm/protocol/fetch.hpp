// SPDX-License-Identifier: BSD-3-Clause
//
// Fetching by a driver that makes system calls (libfabric): memory is exposed when the RTS is handed over, and read by
// the holder of the driver's gate, several pieces at a time.
//
// Who: send_path, rendezvous, the server of a driver.
// Threads: expose() and serve() by the holder of the gate, outside the engine's lock; the rest under the lock. Such a
//     driver reports everything from inside poll(), so whoever handles its packets holds the gate, too.
// Surprise: registering memory may take a system call, so the place for the exposure is kept free in the RTS and
//     filled in outside the lock.
//
//   write_rts ─▶ Packet::late ─▶ (flush) expose ─▶ … FIN ─▶ withdrawals ─▶ (serve) withdraw
//   start ─▶ slot.pulls ─▶ (serve) remote_copy × outstanding ─▶ piece_done ─▶ … ─▶ pulled
#pragma once

#include "comm/core/engine.hpp"
#include "comm/protocol/rendezvous.hpp"

namespace canele::comm::fetch {

/// Bytes to keep free in an RTS for the exposure; 0: this driver, or this memory, cannot be exposed.
std::size_t room(const Rail& rail, const Request& request);
/// Notes what expose() has to do for the RTS at `rts_at`, which keeps `room` free.
void expose_later(Packet& packet, Request& request, std::byte* rts_at, std::span<std::byte> room);
/// Exposes the memory of the packet's RTSs, and says so in them.
void expose(DriverSlot& slot, int rank, Packet& packet);
/// The send is over: its memory is no longer exposed.
void withdraw(const Peer& peer, Request& request);

/// A pull begins.
void submit(DriverSlot& slot, rendezvous::Pull& pull);
/// Issues pieces of pulls that wait for it, and ends exposures. How much it did.
int serve(DriverSlot& slot);
/// The driver has fetched a piece.
void piece_done(DriverSlot& slot, rendezvous::Pull& pull, drivers::Status status);
/// The peer is gone, and with it the pieces that this driver was fetching from it.
void drop(Engine& engine, const Peer& peer, DriverSlot& slot);

}  // namespace canele::comm::fetch
