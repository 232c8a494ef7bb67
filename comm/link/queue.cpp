// SPDX-License-Identifier: BSD-3-Clause
//
// Send, step 3: items join a backlog. Also control chunks, doorbells, and the pool of packets.
#include "comm/link/queue.hpp"

#include <cassert>
#include <cstring>
#include <utility>

#include "ltask/coverage.hpp"

namespace canele::comm::link {
namespace {

std::size_t size_in_packet(const Context& context, const Request& request) CANELE_UNDER_LOCK;

}  // namespace

void join_backlog(Context& context, Peer& peer, Request& request) {
  const bool advertising = request.stage == Request::Stage::advertising;
  if (!advertising) count_message(context, peer, request);  // a blocked envelope counts when it is taken
  request.item.kind = strategies::Kind::envelope;
  request.item.size = static_cast<std::uint32_t>(size_in_packet(context, request));
  request.item.flow_session = request.session->number;
  request.item.flow_tag = request.session->order_across_tags ? 0 : request.status_tag;
  enqueue(context, peer, request.item);
}

void count_message(Context& context, Peer& peer, const Request& request) {
  count_message(context, peer, request.data.length,
                request.rendezvous ? Counter::rendezvous_sent : Counter::eager_sent);
}

namespace {

/// Returns the most bytes that the envelope can take in a packet.
std::size_t size_in_packet(const Context& context, const Request& request) {
  if (!request.rendezvous) {
    return wire::chunk_size(request.data.length + (request.synchronous ? sizeof(std::uint64_t) : 0));
  }
  const std::size_t ahead = request.stage == Request::Stage::advertising              ? sizeof(wire::BlockedEnvelope)
                            : request.role == Request::InternalRole::destination_send ? context.route_size(request)
                                                                                      : 0;
  return wire::chunk_size(ahead + sizeof(wire::Rts) + request.header + drivers::MemoryKey::max_size);
}

}  // namespace

void enqueue(Context& context, Peer& peer, strategies::Item& item) {
  assert(!item.queued);
  item.queued = true;
  item.age = ++peer.next_age;
  peer.queued_bytes += item.size;
  peer.backlog->add(item);
  context.mark_backlogged(peer);
}

void dequeue_bulk(Peer& peer, Request& request) {
  if (std::exchange(request.item.queued, false)) peer.backlog->remove(request.item);
}

void note_bytes_left(const Peer& peer, Request& request) {
  request.item.bytes_left = request.expected - request.moved - peer.bulk_in_flight(request);
}

void send_control(Context& context, Peer& peer, const ControlFields& fields) {
  if (peer.disconnected()) return;
  Control& c = context.controls.make();
  const std::size_t size = fields.payload.size();
  assert(size <= sizeof c.payload);
  c.head = {fields.tag, fields.seq, fields.session, fields.type, 0};
  c.payload_size = static_cast<std::uint8_t>(size);
  if (size != 0) std::memcpy(c.payload, fields.payload.data(), size);
  c.size = static_cast<std::uint32_t>(wire::chunk_size(size));
  enqueue(context, peer, c);
}

void answer(Context& context, Peer& peer, const ControlFields& fields) {
  const std::size_t size = wire::chunk_size(fields.payload.size());
  std::byte packet[longest_fast_chunk];
  if (!can_send_fast(peer, size)) return send_control(context, peer, fields);
  std::byte* const payload =
      wire::put_head(packet, {fields.tag, fields.seq, fields.session, fields.type, 0}, fields.payload.size());
  if (!fields.payload.empty()) std::memcpy(payload, fields.payload.data(), fields.payload.size());
  if (!send_fast(context, peer, {packet, size})) send_control(context, peer, fields);
}

bool send_fast(Context& context, Peer& peer, std::span<const std::byte> packet) {
  Rail& rail = *peer.rail;
  if (rail.instance->driver->send_inline(peer.rank, packet.data(), packet.size(), nullptr, 0) != drivers::Status::ok) {
    CANELE_COVER(one_sided_found_full);
    transition(rail, Transmit::full);
    return false;
  }
  CANELE_COVER(one_sided_sent_fast);
  peer.counters.add(Counter::packets_sent);
  doorbell(context, rail);
  return true;
}

[[gnu::cold]] void ring(Context& context, const Rail& rail) {
  context.after_unlock.ring(*rail.instance->driver, rail.peer->rank);
  context.counters.add(Counter::doorbells_sent);
}

std::unique_ptr<Packet> new_packet(Context& context) {
  if (context.free_packets.empty()) return std::make_unique<Packet>();
  std::unique_ptr<Packet> packet = std::move(context.free_packets.back());
  context.free_packets.pop_back();
  packet->piece_count = 0;
  packet->size = 0;
  packet->bulk = false;
  packet->plan.count = 0;
  packet->plan.size = 0;
  packet->late.clear();
  return packet;
}

void free_packet(Context& context, std::unique_ptr<Packet> packet) {
  constexpr std::size_t kept = 16;
  if (context.free_packets.size() < kept && !CANELE_BUGGIFY(packet_not_kept))
    context.free_packets.push_back(std::move(packet));
}

}  // namespace canele::comm::link
