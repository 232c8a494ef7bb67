// SPDX-License-Identifier: BSD-3-Clause
//
// The way into a peer's backlog, the doorbell, and the pool of packets.
//
// Any thread may call these functions, under the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::link {

/// Does step 3 of a send: its envelope, which may leave, joins the backlog.
void join_backlog(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;

/// Count a message as sent, by the protocol that it takes.
inline void count_message(Context& context, Peer& peer, std::size_t length, Counter protocol) {
  context.counters.add(protocol);
  peer.counters.add(Counter::messages_sent);
  peer.counters.add(Counter::bytes_sent, length);
}
void count_message(Context& context, Peer& peer, const Request& request);

/// Adds an item to the peer's backlog.
void enqueue(Context& context, Peer& peer, strategies::Item& item) CANELE_UNDER_LOCK;

/// Takes the bulk item of a send out of the backlog, if it is there.
void dequeue_bulk(Peer& peer, Request& request) CANELE_UNDER_LOCK;

/// Tells the strategy how many bytes of a granted transfer no rail has taken yet.
void note_bytes_left(const Peer& peer, Request& request) CANELE_UNDER_LOCK;

/// What a control chunk says. The payload is copied.
struct ControlFields {
  wire::Type type;
  std::uint64_t tag = 0;
  std::uint32_t seq = 0;
  std::uint16_t session = 0;
  std::span<const std::byte> payload = {};
};
/// Returns the bytes of a value, as a payload.
template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}
/// Queues a small control chunk. Does nothing if the peer is gone.
void send_control(Context& context, Peer& peer, const ControlFields& fields) CANELE_UNDER_LOCK;
/// The same for a chunk that the peer waits for: it leaves at once, if it can.
void answer(Context& context, Peer& peer, const ControlFields& fields) CANELE_UNDER_LOCK;

/// Returns whether a packet of one chunk, of `size` bytes with its head, can leave before the peer is flushed: its
/// driver is written to, and nothing is queued before it.
[[maybe_unused]] static inline bool can_send_fast(const Peer& peer, std::size_t size) {
  if (peer.state != Peer::State::up) return false;
  const Rail& rail = *peer.rail;
  return rail.transmit == Transmit::idle && size < sizeof(wire::Head) + rail.inline_limit &&
         (!peer.backlogged || peer.backlog->empty()) && !CANELE_BUGGIFY(no_fast_chunk);
}
inline constexpr std::size_t longest_fast_chunk = sizeof(wire::Head) + Rail::longest_inline;
/// Sends a packet for which can_send_fast() is true. Returns false, with nothing sent, if the driver is full.
bool send_fast(Context& context, Peer& peer, std::span<const std::byte> packet) CANELE_UNDER_LOCK;

/// ring() notes that the doorbell of the rail's peer is due. doorbell() does so only if the last send found the peer
/// asleep.
void ring(Context& context, const Rail& rail) CANELE_UNDER_LOCK;
inline void doorbell(Context& context, const Rail& rail) CANELE_UNDER_LOCK {
  if (rail.instance->driver->wants_wake(rail.peer->rank)) [[unlikely]]
    ring(context, rail);
}

std::unique_ptr<Packet> new_packet(Context& context) CANELE_UNDER_LOCK;
void free_packet(Context& context, std::unique_ptr<Packet> packet) CANELE_UNDER_LOCK;

}  // namespace canele::comm::link
