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

#include "comm/engine/engine.hpp"

namespace canele::comm::rendezvous {

struct PulledOp : Op {};

/// One message that is being copied out of a peer's memory, or into it. Pooled.
struct Pull : InFlight, PulledOp, ltask::Task {
  Engine* engine = nullptr;
  Request* request = nullptr;
  Peer* peer = nullptr;
  drivers::Driver* driver = nullptr;
  std::uint64_t handle = 0;  ///< of the send
  std::uint64_t want = 0, offset = 0;
  bool queued = false;  ///< in DriverSlot::pulls
  int outstanding = 0;  ///< pieces that the driver is fetching; see async_get.hpp
  drivers::Exposure exposure;
  drivers::Status status = drivers::Status::ok;
  Pull* next_free = nullptr;

  // Shared copies only. `handle` is then the peer's name for its end.
  Claims claims;
  drivers::Access access = drivers::Access::get;
  std::uint64_t own = 0;  ///< our name for our end
  bool last = false;      ///< this end has ended the last chunk of all
};

/// Moves the data of an announced message to a receive with memory, or ends the receive. `exposed_by`: the mark of the
/// driver that made the exposure.
void start(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure,
           std::uint8_t exposed_by);
/// Returns whether it is better now to copy this send or receive out of the other end's memory, or into it, than to
/// stream it.
bool kernel_copies(const Engine& engine, const Peer& peer, const Request& request);
/// Makes the memory of a send readable by the peer, if the driver can. Else exposure.size stays 0.
void expose(Peer& peer, Request& request, drivers::Exposure& exposure);

const char* on_cts(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);
const char* on_fin(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);

/// Grants again what is missing of a transfer. Its sender has lost the rail that carried it.
void on_again(Engine& engine, Peer& peer, std::uint64_t key);
/// Asks for the bytes from `offset` on as a stream, under a new key.
void grant(Engine& engine, Request& request, Peer& peer, std::uint64_t send, std::uint64_t offset);
/// Asks for what is missing of a transfer that was granted before.
void grant_again(Engine& engine, Request& request);
/// Handles that the peer that sends a transfer's data is gone, and that no driver writes that data any more.
void lost_source(Engine& engine, Request& request, const Peer& peer);

/// Returns where bulk bytes of transfer `key` go; see DriverEvents.
int landing(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t offset,
            std::uint64_t length, iovec* out, int max);
void landed(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t length);
/// Handles that no driver writes to the memory of peer.bundle->landings[index] any more.
void landing_closed(Engine& engine, Peer& peer, std::size_t index);

Pull& new_pull(Engine& engine, Request& request, Peer& peer, std::span<const std::byte> exposure);
void free_pull(Engine& engine, Pull& pull);
/// Starts the copy by this end alone, with a driver whose remote_copy() any thread may call.
void pull_alone(Pull& pull);
/// Tells the sender that its data has been taken, or why not.
void fin(Engine& engine, Peer& peer, std::uint64_t handle, int outcome);
/// Returns what a fin or an ack says of a send: CANELE_OK, CANELE_ENOMEM, CANELE_ECANCELED, else CANELE_EPEER.
int outcome_of(std::uint32_t word);
/// Asks for the first `want` bytes of a send as a stream.
void stream(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want);

/// Handles the end of a pull.
void pulled(Engine& engine, Pull& pull);

}  // namespace canele::comm::rendezvous
