// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous get by a driver that makes system calls (libfabric). The sender's memory is registered when the RTS is
// handed over. The holder of the receiving instance's `call_lock` reads it, several pieces at a time.
//
// register_memory() and serve() are called by the thread that has `call_lock`, outside the engine's lock. All other
// functions are called under the lock. Such a driver reports everything from inside poll(), so the thread that handles
// its packets has `call_lock`, too.
//
// Registering memory may take a system call. So the place for the rkey is kept free in the RTS, and is filled in
// outside the lock.
//
//   write_rts ─▶ Packet::late ─▶ (flush) register_memory ─▶ … FIN ─▶ deregistrations ─▶ (serve) deregister
//   begin_get ─▶ instance.gets ─▶ (serve) rma × outstanding ─▶ piece_done ─▶ … ─▶ transfer_done
#pragma once

#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::async_get {

/// Notes what register_memory() has to do for the RTS at `rts_at`, which keeps `room` free.
void register_later(Packet& packet, Request& request, std::byte* rts_at, std::span<std::byte> room);
/// Registers the memory of the packet's RTSs, and writes the rkeys into them.
void register_memory(DriverInstance& instance, int rank, Packet& packet);
/// Ends the registration of a send that is complete.
void deregister(const Peer& peer, Request& request);

/// Begins a get.
void submit(DriverInstance& instance, rendezvous::RmaCopy& copy);
/// Issues pieces of gets that wait for it, and ends registrations. Returns how much it did.
int serve(DriverInstance& instance);
/// Handles that the driver has fetched a piece.
void piece_done(DriverInstance& instance, rendezvous::RmaCopy& copy, drivers::Status status);
/// Drops the pieces that this driver was fetching from a peer that is disconnected.
void drop(Context& context, const Peer& peer, DriverInstance& instance) CANELE_UNDER_LOCK;

}  // namespace canele::comm::async_get
