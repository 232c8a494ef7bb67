// SPDX-License-Identifier: BSD-3-Clause
//
// The send path: from a posted send to a driver. Read send.cpp (what becomes of a message) and link/transmit.cpp
// (what becomes of a packet) top-down.
//
// Any thread may call these functions, under the engine's lock.
//
// Nothing is decided when the user calls. A message waits in the backlog until a rail can take a packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/engine/engine.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::send_path {

/// Does steps 1 to 3: a posted send joins the backlog of its peer.
void accept(Engine& engine, Request& request);
/// Does the first part of accept(). Returns false if the send has ended, or is withheld.
bool admit(Engine& engine, Request& request);
/// Return the longest message, in bytes, that goes eagerly to the peer, or by the driver.
std::size_t eager_limit(const Engine& engine, const Peer& peer);
std::size_t eager_limit(const Engine& engine, const DriverSlot& slot);

/// Does the rest of accept(), once the envelope may leave.
void join_backlog(Engine& engine, Peer& peer, Request& request);

/// Counts a message as sent, by the protocol that it takes.
inline void count(Engine& engine, Peer& peer, std::size_t length, Counter protocol) {
  engine.counters.add(protocol);
  peer.counters.add(Counter::messages_sent);
  peer.counters.add(Counter::bytes_sent, length);
}
void count_message(Engine& engine, Peer& peer, const Request& request);

/// Does step 4: gives packets to the peer's rail as long as the rail takes them.
void pump(Engine& engine, Peer& peer);

/// Does step 5: writes the chunk of one planned item at `out`. `staged`: the packet, if its driver is handed pieces
/// later. Large eager payloads are then left out of the chunk, and follow as pieces.
struct Written {
  std::byte* end;
  bool references = false;  ///< the payload is not in the chunk: it follows as a piece of the user's memory
};
Written write_item(Engine& engine, Peer& peer, strategies::Item& item, std::byte* out, Packet* staged);

/// Does step 6, for an item whose bytes no longer need the user's memory.
void item_left(Engine& engine, strategies::Item& item);

/// Handles the answer of a system-call driver for the packet of `rail` (rail.result).
void handed_over(Engine& engine, Rail& rail);
/// Handles that the memory of the packet is free again.
void packet_done(Engine& engine, Rail& rail, drivers::Status status);
/// Handles that `bytes` bulk bytes have left.
void bulk_left(Engine& engine, Peer& peer, Request& request, std::size_t bytes);

/// Makes sure that the peer learns of the session before it gets what is queued next.
void announce(Engine& engine, Peer& peer, const Session& session);

/// Queues a small control chunk.
void control(Engine& engine, Peer& peer, wire::Type type, std::uint64_t tag, std::uint32_t seq, std::uint16_t session,
             const void* payload, std::size_t size);

/// ring() notes that the doorbell of the rail's peer is due. doorbell() does so only if the last send found the peer
/// asleep.
void ring(Engine& engine, const Rail& rail);
inline void doorbell(Engine& engine, const Rail& rail) {
  if (rail.slot->driver->wants_wake(rail.peer->rank)) [[unlikely]]
    ring(engine, rail);
}

/// Sends the next piece of a granted transfer by a rail that is idle. Returns false if the rail is full.
bool send_bulk(Engine& engine, Rail& rail, Request& request);

/// Counts a packet as sent: envelopes, packets, aggregation.
void count_packet(Engine& engine, Peer& peer, const strategies::Plan& plan);
std::unique_ptr<Packet> new_packet(Engine& engine);
void free_packet(Engine& engine, std::unique_ptr<Packet> packet);

/// Adds an item to the peer's backlog.
void enqueue(Engine& engine, Peer& peer, strategies::Item& item);

void reprioritize(Engine& engine, ReprioritizeOp& op);

}  // namespace canele::comm::send_path
