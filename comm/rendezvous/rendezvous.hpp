// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: a large message announces itself (RTS), and the receiver decides how its data comes.
//
//   get:     RTS(exposure) ─▶ the receiver copies, chunk by chunk, from the sender's memory ─▶ FIN
//   shared:  RTS(exposure) ─▶ share, back to the sender: both ends copy, see receiver_initiated.hpp
//   stream:  RTS ─▶ CTS(key, offset, length) ─▶ bulk packets with that key, straight into the user's memory
//
// Called under the engine's lock by any thread. Only pull_chunk() runs outside the lock, as an ltask.
//
// With get, the sender's CPU does nothing, and may compute all the while. A receive that is shorter than the message
// asks for what fits, and the sender is told so.
#pragma once

#include <span>

#include "comm/rendezvous/state.hpp"

namespace canele::comm::rendezvous {

/// Moves the data of an announced message to a receive with memory, or ends the receive. `exposed_by`: the mark of the
/// driver that made the exposure.
void start(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure,
           std::uint8_t exposed_by);
/// Returns whether it is better now to copy this send or receive out of the other end's memory, or into it, than to
/// stream it.
bool kernel_copies(const Context& context, const Peer& peer, const Request& request);
/// Makes the memory of a send readable by the peer, if the driver can. Else exposure.size stays 0.
void expose(Peer& peer, Request& request, drivers::Exposure& exposure);

const char* on_cts(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);
const char* on_fin(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);

/// Grants again what is missing of a transfer. Its sender has lost the rail that carried it.
void on_again(Context& context, Peer& peer, std::uint64_t key);
/// Asks for the bytes from `offset` on as a stream, under a new key.
void grant(Context& context, Request& request, Peer& peer, std::uint64_t send, std::uint64_t offset);
/// Asks for what is missing of a transfer that was granted before.
void grant_again(Context& context, Request& request);
/// Handles that the peer that sends a transfer's data is gone, and that no driver writes that data any more.
void lost_source(Context& context, Request& request, const Peer& peer);

/// Returns where bulk bytes of transfer `key` go; see DriverEvents.
int landing(Context& context, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t offset,
            std::uint64_t length, iovec* out, int max);
void landed(Context& context, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t length);
/// Handles that no driver writes to the memory of peer.bundle->landings[index] any more.
void landing_closed(Context& context, Peer& peer, std::size_t index);

Pull& new_pull(Context& context, Request& request, Peer& peer, std::span<const std::byte> exposure);
void free_pull(Context& context, Pull& pull);
/// Starts the copy by this end alone, with a driver whose remote_copy() any thread may call.
void pull_alone(Pull& pull);
/// Tells the sender that its data has been taken, or why not.
void fin(Context& context, Peer& peer, std::uint64_t handle, int outcome);
/// Asks for the first `want` bytes of a send as a stream.
void stream(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want);

/// Handles the end of a pull.
void pulled(Context& context, Pull& pull);

}  // namespace canele::comm::rendezvous
