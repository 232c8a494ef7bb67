// SPDX-License-Identifier: BSD-3-Clause
//
// Groups of rails to one peer.
//
// An eager message is finished when its packet is kept, before any rail has it: the copy is ours.
#include "comm/link/sequencing.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "comm/link/pacing.hpp"
#include "comm/link/parse_chunks.hpp"
#include "comm/link/queue.hpp"
#include "comm/link/transmit.hpp"
#include "comm/state/staged.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::sequencing {
namespace {

using drivers::Status;
using strategies::Plan;

Verdict take_next(Context& context, Peer& peer, std::span<const std::byte> bytes) CANELE_UNDER_LOCK;
Verdict drain_early(Context& context, Peer& peer) CANELE_UNDER_LOCK;
void acknowledge(Context& context, Peer& peer, bool now) CANELE_UNDER_LOCK;

bool usable(const Rail& rail) { return rail.is_connected() && rail.transmit == Transmit::idle; }

/// Makes a sequenced packet of the planned items. The items are then sent.
std::shared_ptr<UnackedPacket> make_packet(Context& context, Peer& peer, const Plan& plan) CANELE_UNDER_LOCK {
  RailGroup& group = *peer.rail_group;
  auto packet = std::make_shared<UnackedPacket>();
  packet->number = group.next_out++;
  packet->bytes.resize(sizeof(wire::Head) + plan.size);
  const wire::Head head{packet->number, static_cast<std::uint32_t>(group.acknowledge()), 0, wire::Type::sequenced, 0};
  std::byte* end = wire::put_head(packet->bytes.data(), head, 0);
  for (int i = 0; i < plan.count; ++i) end = context.write_item(peer, *plan.items[i], end, nullptr).end;
  packet->bytes.resize(static_cast<std::size_t>(end - packet->bytes.data()));  // an rts may have turned out shorter
  group.sent_bytes += packet->bytes.size();
  group.sent.push_back(packet);
  link::count_packet(context, peer, plan);
  for (int i = 0; i < plan.count; ++i) context.item_sent(*plan.items[i]);
  return packet;
}

/// Gives a sequenced packet to a rail. Returns false if the rail is full and has not taken it.
bool put(Context& context, Rail& rail, const std::shared_ptr<UnackedPacket>& packet) CANELE_UNDER_LOCK {
  const iovec piece{packet->bytes.data(), packet->bytes.size()};
  packet->rail = &rail;
  if (rail.instance->memory_only()) {
    const Status status =
        rail.instance->driver->send_packet(rail.peer->rank, &piece, 1, piece.iov_len, static_cast<DriverToken*>(&rail));
    if (status != Status::full) return true;
    transition(rail, Transmit::full);
    return false;
  }
  rail.packet = link::new_packet(context);
  rail.packet->pieces[rail.packet->piece_count++] = piece;
  rail.packet->size = piece.iov_len;
  rail.unacked = packet;
  transition(rail, Transmit::staged);
  rail.instance->push_flush(rail);
  return true;
}

/// Sends the next bytes of a bulk item on a rail: at most `most`; 0: no limit. Returns false if the rail is full.
bool send_bulk(Context& context, Rail& rail, Request& request, std::uint64_t most) CANELE_UNDER_LOCK {
  const std::uint64_t rest = request.item.bytes_left;
  const std::uint64_t offset = request.expected - rest;
  assert(rest > 0 && "an item all of whose bytes were handed out is not in the backlog");
  if (request.bulk_rails != 0 && request.bulk_rails != bulk_bit(rail)) CANELE_COVER(transfer_split);
  return link::send_bulk(context, rail, request, {offset, most == 0 ? rest : std::min(most, rest)});
}

/// Sends a packet of one chunk, without a number. Returns false if the rail is full and has not taken it.
bool put_alone(Context& context, Rail& rail, const wire::Head& chunk) CANELE_UNDER_LOCK {
  auto packet = std::make_shared<UnackedPacket>();
  packet->bytes.resize(sizeof(wire::Head));
  wire::put_head(packet->bytes.data(), chunk, 0);
  return put(context, rail, packet);
}

/// Sends what is due about this rail. Returns false if there is nothing, or the rail cannot take it.
bool feed_pacing(Context& context, Rail& rail) CANELE_UNDER_LOCK {
  const std::optional<wire::Head> chunk = pacing::take_due(context, rail);
  if (!chunk) return false;
  if (put_alone(context, rail, *chunk)) return true;
  pacing::put_back(rail, *chunk);
  return false;
}

/// Sends a packet that only acknowledges. It has no number: with both sides at their unacked limit, neither could
/// lift the other's.
bool send_ack(Context& context, Rail& rail) CANELE_UNDER_LOCK {
  CANELE_COVER(acknowledged_without_a_number);
  RailGroup& group = *rail.peer->rail_group;
  if (!put_alone(context, rail, {group.next_in - 1, 0, 0, wire::Type::cumulative_ack, 0})) return false;
  group.acknowledge();
  return true;
}

/// Sends what may go where no sequenced packet can. Returns false if there is nothing, or the rail cannot take it.
bool feed_unsequenced(Context& context, const Peer& peer, Rail& rail) CANELE_UNDER_LOCK {
  if (peer.rail_group->ack_due) return send_ack(context, rail);
  if (!peer.rail_group->closing || !peer.backlog->empty() || rail.connection == Connection::closing) return false;
  CANELE_COVER(rail_close_sent);
  if (!put_alone(context, rail, {0, 0, 0, wire::Type::rail_close, 0})) return false;
  transition(rail, Connection::closing);
  return true;
}

/// Gives one packet to one rail. Returns false if there is none for it, or the rail cannot take it.
bool feed(Context& context, Peer& peer, Rail& rail) CANELE_UNDER_LOCK {
  RailGroup& group = *peer.rail_group;
  if (feed_pacing(context, rail)) return true;
  if (!usable(rail)) return false;
  if (!group.to_resend.empty()) {
    const auto packet = group.to_resend.front();
    group.to_resend.pop_front();
    CANELE_COVER(packet_retransmitted);
    if (put(context, rail, packet)) return true;
    group.to_resend.push_front(packet);
    return false;
  }
  const bool shut =
      !group.below_unacked_limit() || (group.sent.size() >= 2 * RailGroup::ack_every && CANELE_BUGGIFY(window_shut));
  if (peer.backlog->empty() || shut) return feed_unsequenced(context, peer, rail);
  pacing::View view = pacing::view_of(context, peer, rail);
  if (!view.loads.empty() && CANELE_BUGGIFY(careless_split)) {
    view.loads = {};
    view.bulk_allowed = true;
  }
  const std::size_t most = view.quick ? group.max_packet - sizeof(wire::Head) : 0;
  Plan plan;
  peer.backlog->plan({most, view.bulk_allowed, &rail.instance->costs, view.loads, view.asking}, plan);
  if (plan.count == 0) return feed_unsequenced(context, peer, rail);
  if (plan.items[0]->kind == strategies::Kind::bulk)
    return send_bulk(context, rail, request_of(*plan.items[0]), plan.bulk_bytes);
  for (int i = 0; i < plan.count; ++i) plan.items[i]->queued = false;
  peer.queued_bytes -= plan.size;
  const auto packet = make_packet(context, peer, plan);
  if (!put(context, rail, packet)) group.to_resend.push_back(packet);
  return true;
}

/// Starts the bulk bytes of a send again, after one of their rails has died. The receiver says where to go on. Rails
/// that still hold bytes of the old grant bring them in vain.
void restart(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK {
  link::dequeue_bulk(peer, request);
  request.bulk_rails = 0;
  if (request.stage == Request::Stage::draining) {
    CANELE_COVER_RARE(restart_not_needed);
    request.transfer_id = Handle::none;
    request.moved = request.expected;  // the receiver has all of it
    context.bulk_sent(peer, request, 0);
    return;
  }
  CANELE_COVER(stream_restarted);
  request.moved = request.expected = 0;
  if (is_staged(request)) staged_of(request).granted_end = 0;
  link::send_control(context, peer, {.type = wire::Type::regrant, .tag = word_of(request.transfer_id)});
  request.transfer_id = Handle::none;
}

}  // namespace

void begin(const Context& context, Peer& peer, std::size_t group) {
  if (peer.rail_group == nullptr) peer.rail_group = std::make_unique<RailGroup>();
  if (std::exchange(peer.rail_group->sequenced, true)) return;
  peer.backlog = strategies::make_split(std::move(peer.backlog));
  for (const auto& instance : context.instances) {
    if (instance->group != group) continue;
    peer.rail_group->max_packet = std::min(peer.rail_group->max_packet, instance->driver->capabilities().max_packet);
  }
}

void flush(Context& context, Peer& peer) {
  for (bool fed = true; fed;) {  // what one rail has taken may change what another one takes
    fed = false;
    for (const auto& rail : peer.rails) {
      while (usable(*rail) && feed(context, peer, *rail)) fed = true;
    }
  }
  for (const auto& rail : peer.rails) {
    if (rail->is_connected() && rail->instance->memory_only()) link::doorbell(context, *rail);
  }
}

Verdict accept_sequenced(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> rest) {
  if (peer.rail_group == nullptr) peer.rail_group = std::make_unique<RailGroup>();
  RailGroup& group = *peer.rail_group;
  const std::uint64_t number = head.tag;
  if (number < group.next_in) {  // its sender has lost a rail, and the acknowledgement with it
    CANELE_COVER(packet_came_twice);
    // Or the packet was taken, and there was no memory for an early one behind it.
    if (const Verdict v = drain_early(context, peer); !v.is_ok()) return v;
    if (!peer.disconnected()) acknowledge(context, peer, true);
    return Verdict::ok();
  }
  if (number > group.next_in) {
    if (number - group.next_in > RailGroup::most_packets ||
        group.early_bytes + rest.size() > 2 * RailGroup::most_bytes) {
      return Verdict::violation("a packet number is too far ahead");
    }
    CANELE_COVER(packet_came_early);
    if (group.early.try_emplace(number, rest.begin(), rest.end()).second) group.early_bytes += rest.size();
    return Verdict::ok();
  }
  // The low 32 bits are enough: fewer than 2^31 packets are ever unacknowledged.
  const std::uint64_t acked = group.next_out - 1 - group.sent.size();
  if (const auto more = static_cast<std::int32_t>(head.seq - static_cast<std::uint32_t>(acked)); more > 0) {
    if (const Verdict v = on_cumulative_ack(peer, acked + static_cast<std::uint64_t>(more)); !v.is_ok()) return v;
    context.mark_backlogged(peer);
  }
  if (const Verdict v = take_next(context, peer, rest); !v.is_ok()) return v;
  if (const Verdict v = drain_early(context, peer); !v.is_ok()) return v;
  if (!peer.disconnected()) acknowledge(context, peer, false);
  return Verdict::ok();
}

namespace {

/// Parses the packet whose turn it is. If there is no memory for all of it, its turn remains.
Verdict take_next(Context& context, Peer& peer, std::span<const std::byte> bytes) {
  RailGroup& group = *peer.rail_group;
  ++group.next_in;
  group.bytes_to_ack += bytes.size();
  if (bytes.empty()) return Verdict::ok();
  const Verdict v = link::parse_chunks(context, peer, bytes, &group.chunks_done);
  if (v.is_retry()) {
    --group.next_in;
    group.bytes_to_ack -= bytes.size();
  }
  return v;
}

/// Parses packets that came early and whose turn it is now.
Verdict drain_early(Context& context, Peer& peer) {
  RailGroup& group = *peer.rail_group;
  while (!group.early.empty() && group.early.begin()->first <= group.next_in && !peer.disconnected()) {
    if (group.early.begin()->first < group.next_in) {  // there was no memory for it, and it has come once more
      CANELE_COVER_RARE(early_packet_came_again);
      group.early_bytes -= group.early.begin()->second.size();
      group.early.erase(group.early.begin());
      continue;
    }
    auto first = group.early.extract(group.early.begin());  // the peer may die of this packet, and drop the others
    const std::vector<std::byte>& bytes = first.mapped();
    if (const Verdict v = take_next(context, peer, bytes); !v.is_ok()) {
      if (v.is_retry()) group.early.insert(std::move(first));
      return v;
    }
    CANELE_COVER(early_packet_taken);
    group.early_bytes -= std::min(group.early_bytes, bytes.size());
  }
  return Verdict::ok();
}

/// Acknowledges what has come, if the peer may be waiting for that.
void acknowledge(Context& context, Peer& peer, bool now) {
  RailGroup& group = *peer.rail_group;
  const bool soon = group.next_in - 1 - group.acknowledged >= RailGroup::ack_every ||
                    group.bytes_to_ack >= RailGroup::ack_every_bytes || CANELE_BUGGIFY(acknowledged_at_once);
  if (!now && !soon) return;
  if (group.sequenced) {
    group.ack_due = true;
    context.mark_backlogged(peer);
    return;
  }
  link::send_control(context, peer, {.type = wire::Type::cumulative_ack, .tag = group.acknowledge()});
}

}  // namespace

Verdict on_cumulative_ack(Peer& peer, std::uint64_t upto) {
  if (peer.rail_group == nullptr || upto >= peer.rail_group->next_out)
    return Verdict::violation("it acknowledges a packet that was not sent");
  RailGroup& group = *peer.rail_group;
  while (!group.sent.empty() && group.sent.front()->number <= upto) {
    group.sent_bytes -= group.sent.front()->bytes.size();
    group.sent.pop_front();
  }
  std::erase_if(group.to_resend, [&](const auto& packet) { return packet->number <= upto; });
  return Verdict::ok();
}

void close_rails(Context& context, Peer& peer) {
  if (peer.rail_group == nullptr || !peer.rail_group->sequenced) return;
  peer.rail_group->closing = true;
  context.mark_backlogged(peer);
}

bool rails_closed(const Peer& peer) {
  if (peer.rail_group == nullptr || !peer.rail_group->closing) return true;
  return std::all_of(peer.rails.begin(), peer.rails.end(),
                     [](const auto& rail) { return rail->connection != Connection::up; });
}

void rail_lost(Context& context, Peer& peer, Rail& rail) {
  RailGroup& group = *peer.rail_group;
  for (const auto& packet : group.sent) {
    const bool waits = std::find(group.to_resend.begin(), group.to_resend.end(), packet) != group.to_resend.end();
    if (packet->rail == &rail && !waits) group.to_resend.push_back(packet);
  }
  std::sort(group.to_resend.begin(), group.to_resend.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
  context.sends.each([&](Request& request) CANELE_UNDER_LOCK {
    if (request.rank != peer.rank || request.item.kind != strategies::Kind::bulk || request.expected == 0 ||
        (request.bulk_rails & bulk_bit(rail)) == 0)
      return;
    if (peer.holds(request)) CANELE_COVER(stream_in_a_dead_rail);
    restart(context, peer, request);
  });
  if (!rail.in_flush()) take_back(context, rail);
  for (std::size_t i = 0; i < group.destinations.size();) {
    if (group.destinations[i].instance == rail.instance) {
      CANELE_COVER_RARE(destination_closed_by_a_dead_rail);
      context.destination_closed(peer, i);
    } else {
      ++i;
    }
  }
  context.mark_backlogged(peer);
}

void take_back(Context& context, Rail& rail) {
  rail.unacked.reset();
  if (rail.packet == nullptr) return;
  Request* const bulk =
      rail.packet->bulk && rail.packet->plan.count == 1 ? &request_of(*rail.packet->plan.items[0]) : nullptr;
  rail.packet->plan.count = 0;
  link::free_packet(context, std::move(rail.packet));
  transition(rail, Transmit::idle);
  if (bulk != nullptr) context.bulk_sent(*rail.peer, *bulk, 0);  // only now may it end
}

}  // namespace canele::comm::sequencing
