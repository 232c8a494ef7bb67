// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: large messages announce themselves (RTS), the receiver decides how they come.
//
//   get:     RTS(exposure) ─▶ the receiver copies, chunk by chunk, from the sender's memory ─▶ FIN
//   shared:  RTS(exposure) ─▶ share, back to the sender: both ends copy, see advert.hpp
//   stream:  RTS ─▶ CTS(key, offset, length) ─▶ bulk packets with that key, straight into the user's memory
//
// Who: the engine's lock holder; pull_chunk runs as an ltask, outside the lock.
// Threads: under the engine's lock, except where said.
// Surprise: with get the sender's CPU does nothing: it may compute all the while. A receive that is shorter than
//     the message asks for what fits, and the sender is told so.
#pragma once

#include <span>

#include "comm/core/engine.hpp"

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
  int outstanding = 0;  ///< pieces that the driver is fetching; see fetch.hpp
  drivers::Exposure exposure;
  drivers::Status status = drivers::Status::ok;
  Pull* next_free = nullptr;

  // Shared copies only; `handle` is then the peer's name for its end.
  Claims claims;
  drivers::Access access = drivers::Access::get;
  std::uint64_t own = 0;  ///< our name for our end
  bool last = false;      ///< it has ended the last chunk of all
};

/// In: a receive with memory and its message's announcement; `exposed_by`: the mark of the driver that made the
/// exposure. Out: data moves, or the receive is over.
void start(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure,
           std::uint8_t exposed_by);
/// Is it better to copy this send or receive out of the other's memory, or into it, than to stream it, now?
bool kernel_copies(const Engine& engine, const Peer& peer, const Request& request);
/// Makes the memory of a send readable by the peer if the driver can; else exposure.size stays 0.
void expose(Peer& peer, Request& request, drivers::Exposure& exposure);

const char* on_cts(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);
const char* on_fin(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload);

/// The sender has lost the rail that carried a transfer: what is missing is granted again.
void on_again(Engine& engine, Peer& peer, std::uint64_t key);
/// Asks for bytes from `offset` on as a stream, under a name of their own.
void grant(Engine& engine, Request& request, Peer& peer, std::uint64_t send, std::uint64_t offset);
/// The same for a transfer that has been granted: what is missing of it.
void grant_again(Engine& engine, Request& request);
/// The peer that a transfer's data comes from is gone, and nobody writes to it any more.
void lost_source(Engine& engine, Request& request, const Peer& peer);

/// Where bulk bytes of transfer `key` go; see DriverEvents.
int landing(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t offset,
            std::uint64_t length, iovec* out, int max);
void landed(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t length);
/// No driver writes to the memory of peer.bundle->landings[index] any more.
void landing_closed(Engine& engine, Peer& peer, std::size_t index);

Pull& new_pull(Engine& engine, Request& request, Peer& peer, std::span<const std::byte> exposure);
void free_pull(Engine& engine, Pull& pull);
/// This end alone copies, by a driver that copies anywhere.
void pull_alone(Pull& pull);
/// Tells the sender that its data has been taken, or why not.
void fin(Engine& engine, Peer& peer, std::uint64_t handle, int outcome);
/// What a fin or an ack says of a send: CANELE_OK, CANELE_ENOMEM, CANELE_ECANCELED, else CANELE_EPEER.
int outcome_of(std::uint32_t word);
/// Asks for the first `want` bytes of a send as a stream.
void stream(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want);

/// A pull is over.
void pulled(Engine& engine, Pull& pull);

}  // namespace canele::comm::rendezvous
