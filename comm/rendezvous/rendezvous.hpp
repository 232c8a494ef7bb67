// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: a large message announces itself (RTS), and the receiver decides how its data comes.
//
//   get:     RTS(rkey) ─▶ the receiver copies, chunk by chunk, from the sender's memory ─▶ FIN
//   shared:  RTS(rkey) ─▶ shared_copy, back to the sender: both ends copy, see receiver_initiated.hpp
//   device:  RTS(rkey) ─▶ a device of the receiver copies from the memory of the sender's ─▶ FIN
//   stream:  RTS ─▶ CTS(transfer id, offset, length) ─▶ bulk packets with that id, straight into the user's memory
//
// Called under the engine's lock by any thread. Only get_chunk() runs outside the lock, as an ltask.
//
// With get, the sender's CPU does nothing, and may compute all the while. A receive that is shorter than the message
// asks for what fits, and the sender is told so.
#pragma once

#include <span>

#include "comm/rendezvous/parsed_rts.hpp"
#include "comm/rendezvous/state.hpp"

namespace canele::comm::rendezvous {

/// Moves the data of an announced message to a receive with memory, or ends the receive.
void start_transfer(Context& context, Request& request, Peer& peer, const RemoteSource& source) CANELE_UNDER_LOCK;
/// Returns whether it is better now to copy this receive out of the sender's memory than to stream it: by what has been
/// measured, or by the length from which the driver says so.
bool kernel_copies(const Context& context, const Peer& peer, const Request& request) CANELE_UNDER_LOCK;
/// Returns whether this end measures what a copy by the kernel costs, and a stream. Senders then leave the choice to
/// their receivers.
bool measures_copies(const Context& context, const Peer& peer);
/// The most pieces of memory that an RTS describes.
inline constexpr int most_pieces = 16;
/// Returns whether the memory of a request has at most `most` pieces (up to most_pieces).
bool has_few_pieces(const Request& request, int most);
/// Makes the memory of a send readable by the peer. If the driver cannot, rkey.size stays 0.
void register_memory(Peer& peer, Request& request, drivers::MemoryKey& rkey);

Verdict on_cts(Context& context, Peer& peer, Handle handle, std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_fin(Context& context, Peer& peer, Handle handle, std::span<const std::byte> payload) CANELE_UNDER_LOCK;

/// Sends the bytes that a clear to send has asked for.
void send_stream(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
/// Handles that more of the data of a staged send is available, or never will be. Ends it if it has failed.
void send_further(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
/// Ends a send, after a clear to send, whose data its device could not read; and the receive.
void fail_send(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
/// Handles that the sender of a transfer could not read the rest of its data.
Verdict on_transfer_failed(Context& context, Peer& peer, Handle transfer_id) CANELE_UNDER_LOCK;

/// Ends a transfer whose sender could not read the rest of its data, once no driver writes any of it.
void end_failed_transfer(Context& context, Peer& peer, Handle transfer_id) CANELE_UNDER_LOCK;

/// Grants again what is missing of a transfer. Its sender has lost the rail that carried it.
void on_regrant(Context& context, Peer& peer, Handle transfer_id) CANELE_UNDER_LOCK;
/// Asks for the bytes from `offset` on as a stream, under a new transfer id.
void grant(Context& context, Request& request, Peer& peer, Handle send, std::uint64_t offset) CANELE_UNDER_LOCK;
/// Asks again for what is missing of a transfer that was granted before.
void regrant(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Handles that the peer that sends a transfer's data is disconnected, and that no driver writes that data any more.
void lost_source(Context& context, Request& request, const Peer& peer) CANELE_UNDER_LOCK;

/// Bytes of a transfer.
struct BulkRange {
  Handle transfer_id;
  std::uint64_t offset, length;
};
/// Returns how many pieces of `out` say where bulk bytes go; see DriverEvents.
int bulk_destination(Context& context, Peer& peer, const DriverInstance& instance, const BulkRange& range,
                     std::span<iovec> out) CANELE_UNDER_LOCK;
void bulk_written(Context& context, Peer& peer, const DriverInstance& instance,
                  const BulkRange& range) CANELE_UNDER_LOCK;
/// Handles that no driver writes to the memory of peer.rail_group->destinations[index] any more.
void destination_closed(Context& context, Peer& peer, std::size_t index) CANELE_UNDER_LOCK;

RmaCopy& new_copy(Context& context, Request& request, Peer& peer, std::span<const std::byte> rkey) CANELE_UNDER_LOCK;
void free_copy(Context& context, RmaCopy& copy) CANELE_UNDER_LOCK;
/// Gets the first `want` bytes of a send: in the tasks of the threads that make progress, or by the driver's server.
void begin_get(Context& context, Request& request, Peer& peer, const RemoteSource& source,
               std::uint64_t want) CANELE_UNDER_LOCK;
/// Lets a device of the receiver copy the first `want` bytes of a send.
void begin_device_get(Context& context, Request& request, Peer& peer, const RemoteSource& source,
                      std::uint64_t want) CANELE_UNDER_LOCK;
/// Starts the copy by this end alone, with a driver whose rma() any thread may call.
void start_get(RmaCopy& copy);
/// Tells the sender that its data has been taken, or why not.
void fin(Context& context, Peer& peer, Handle handle, int outcome) CANELE_UNDER_LOCK;
/// Asks for the first `want` bytes of a send as a stream.
void stream(Context& context, Request& request, Peer& peer, Handle handle, std::uint64_t want) CANELE_UNDER_LOCK;

/// Handles the end of a copy.
void transfer_done(Context& context, RmaCopy& copy) CANELE_UNDER_LOCK;

}  // namespace canele::comm::rendezvous
