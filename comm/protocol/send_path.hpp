// SPDX-License-Identifier: BSD-3-Clause
//
// The way out: from a posted send to a driver. Read send_path.cpp (what becomes of a message) and pump.cpp (what
// becomes of a packet) top-down.
//
// Who: the engine's lock holder.
// Threads: under the engine's lock.
// Surprise: nothing is decided when the user calls: a message waits in the backlog until a rail can take a packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm::send_path {

/// Step 1-3: a posted send joins its peer's backlog.
void accept(Engine& engine, Request& request);
/// The first part of it. False: the send has ended, or is withheld.
bool admit(Engine& engine, Request& request);
/// Longest message that goes eagerly; by this driver.
std::size_t eager_limit(const Engine& engine, const Peer& peer);
std::size_t eager_limit(const Engine& engine, const DriverSlot& slot);

/// The rest of it, once the envelope may leave.
void join_backlog(Engine& engine, Peer& peer, Request& request);

/// A message counts as sent, by the protocol that it takes.
inline void count(Engine& engine, Peer& peer, std::size_t length, Counter protocol) {
  engine.counters.add(protocol);
  peer.counters.add(Counter::messages_sent);
  peer.counters.add(Counter::bytes_sent, length);
}
void count_message(Engine& engine, Peer& peer, const Request& request);

/// Step 4: gives packets to the peer's rail as long as it takes them.
void pump(Engine& engine, Peer& peer);

/// Step 5: writes the chunk of one planned item at `out`; returns its end. `staged`: the packet, if its driver is
/// handed pieces later: large eager payloads are then left out, they follow as pieces.
struct Written {
  std::byte* end;
  bool references = false;  ///< the payload is not in the chunk: it follows as a piece of the user's memory
};
Written write_item(Engine& engine, Peer& peer, strategies::Item& item, std::byte* out, Packet* staged);

/// Step 6: an item whose bytes are out of the user's hands.
void item_left(Engine& engine, strategies::Item& item);

/// A system-call driver has answered for the packet of `rail` (rail.result).
void handed_over(Engine& engine, Rail& rail);
/// The packet's memory is free again.
void packet_done(Engine& engine, Rail& rail, drivers::Status status);
/// Bulk bytes have left.
void bulk_left(Engine& engine, Peer& peer, Request& request, std::size_t bytes);

/// The peer will know of the session before what is queued next.
void announce(Engine& engine, Peer& peer, const Session& session);

/// Queues a small control chunk.
void control(Engine& engine, Peer& peer, wire::Type type, std::uint64_t tag, std::uint32_t seq, std::uint16_t session,
             const void* payload, std::size_t size);

/// Notes that the doorbell of the rail's peer is to be rung if the last send found it asleep.
void ring(Engine& engine, const Rail& rail);
inline void doorbell(Engine& engine, const Rail& rail) {
  if (rail.slot->driver->wants_wake(rail.peer->rank)) [[unlikely]]
    ring(engine, rail);
}

/// The next piece of a granted transfer, to a rail that is idle. False: the rail is full.
bool send_bulk(Engine& engine, Rail& rail, Request& request);

/// A packet counts as sent: envelopes, packets, aggregation.
void count_packet(Engine& engine, Peer& peer, const strategies::Plan& plan);
std::unique_ptr<Packet> new_packet(Engine& engine);
void free_packet(Engine& engine, std::unique_ptr<Packet> packet);

/// Adds an item to the peer's backlog.
void enqueue(Engine& engine, Peer& peer, strategies::Item& item);

void reprioritize(Engine& engine, ReprioritizeOp& op);

}  // namespace canele::comm::send_path
