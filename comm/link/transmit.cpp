// SPDX-License-Identifier: BSD-3-Clause
//
// Send, steps 4 and 5: a rail that can take a packet asks the strategy for one, and gives it to the driver.
//
// There are two kinds of drivers. A memory-only driver is written to at once. For a driver that makes system calls the
// packet is only staged here. The thread that serves that driver hands the packet over outside the lock, and calls
// driver_returned() afterwards.
//
//   flush ─▶ plan ─┬─ memory ─▶ inline | reserve, write, commit ─────────────▶ items left    full ─▶ blocked
//                 └─ system ─▶ stage ─▶ (flush) ─▶ driver_returned ─▶ packet_done ─▶ items left  full ─▶ staged
//   blocked and staged packets go on at ready()
#include "comm/link/transmit.hpp"

#include <algorithm>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/link/sequencing.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::link {
namespace {

using drivers::Status;
using strategies::Plan;

constexpr std::size_t inline_room = 64;
constexpr int most_bulk_pieces = 64;

void flush_memory(Context& context, Peer& peer) CANELE_UNDER_LOCK;
bool write_plan(Context& context, Peer& peer, Plan& plan) CANELE_UNDER_LOCK;
void all_sent(Context& context, Peer& peer, Plan& plan) CANELE_UNDER_LOCK;
/// What the only rail of a peer has not sent of a granted transfer.
BulkSlice rest_of(const Request& request) { return {request.moved, request.expected - request.moved}; }
bool write_bulk(Context& context, Rail& rail, Request& request, const BulkSlice& slice) CANELE_UNDER_LOCK;
int bulk_pieces(const Request& request, const BulkSlice& slice, iovec* pieces, std::vector<std::byte>& staging,
                std::size_t* size);
void flush_system(Context& context, Peer& peer) CANELE_UNDER_LOCK;
bool delay(Context& context, Peer& peer) CANELE_UNDER_LOCK;
void stage_items(Context& context, Peer& peer, Packet& packet) CANELE_UNDER_LOCK;
void add_piece(Packet& packet, const void* base, std::size_t size);
void stage_bulk(Packet& packet, const drivers::Capabilities& capabilities, const Request& request,
                const BulkSlice& slice);
void note_handed(const Context& context, Rail& rail, Request& request, std::uint64_t bytes) CANELE_UNDER_LOCK;
void release_staged(Context& context, Rail& rail) CANELE_UNDER_LOCK;

}  // namespace

void flush(Context& context, Peer& peer) {
  if (peer.state != Peer::State::up) return;
  if (peer.rail_group != nullptr && peer.rail_group->sequenced) {
    sequencing::flush(context, peer);
    return;
  }
  if (peer.rail->is_full()) return;
  if (peer.rail->instance->memory_only()) {
    flush_memory(context, peer);
  } else {
    flush_system(context, peer);
  }
}

namespace {

// ---- a memory driver ------------------------------------------------------------------------------------------------

void flush_memory(Context& context, Peer& peer) {
  Rail& rail = *peer.rail;
  if (rail.transmit == Transmit::unblocked) {
    if (!write_plan(context, peer, rail.packet->plan)) {
      transition(rail, Transmit::blocked);
      return;
    }
    CANELE_COVER(blocked_plan_sent);
    free_packet(context, std::move(rail.packet));
    transition(rail, Transmit::idle);
  }
  const strategies::RailView view{rail.instance->driver->capabilities().max_packet, true};
  while (rail.transmit == Transmit::idle && !peer.backlog->empty()) {
    Plan plan;
    peer.backlog->plan(view, plan);
    assert(plan.count > 0 && plan.size <= view.room);
    if (plan.items[0]->kind == strategies::Kind::bulk) {
      Request& request = request_of(*plan.items[0]);
      if (!write_bulk(context, rail, request, rest_of(request))) transition(rail, Transmit::full);
      continue;
    }
    for (int i = 0; i < plan.count; ++i) plan.items[i]->queued = false;
    peer.queued_bytes -= plan.size;
    if (!write_plan(context, peer, plan)) {
      CANELE_COVER(plan_blocked);
      rail.packet = new_packet(context);
      rail.packet->plan = plan;
      transition(rail, Transmit::blocked);
    }
  }
  doorbell(context, rail);
}

/// Writes a plan to a memory driver. Returns true if all its items have left, false if the driver is full.
bool write_plan(Context& context, Peer& peer, Plan& plan) {
  drivers::Driver& driver = *peer.rail->instance->driver;
  const std::uint32_t first_number = peer.next_out;
  if (plan.size <= std::min(inline_room, driver.capabilities().max_inline)) {
    std::byte line[inline_room];
    std::byte* end = line;
    for (int i = 0; i < plan.count; ++i) end = context.write_item(peer, *plan.items[i], end, nullptr).end;
    const auto size = static_cast<std::size_t>(end - line);
    if (driver.send_inline(peer.rank, line, size, nullptr, 0) != Status::ok) {
      peer.next_out = first_number;
      return false;
    }
  } else {
    const std::span<std::byte> room = driver.reserve(peer.rank, plan.size);
    if (room.empty()) return false;
    std::byte* end = room.data();
    for (int i = 0; i < plan.count; ++i) end = context.write_item(peer, *plan.items[i], end, nullptr).end;
    const auto size = static_cast<std::size_t>(end - room.data());
    assert(size <= room.size());
    driver.commit(peer.rank, size);
  }
  all_sent(context, peer, plan);
  return true;
}

void all_sent(Context& context, Peer& peer, Plan& plan) {
  count_packet(context, peer, plan);
  for (int i = 0; i < plan.count; ++i) context.item_sent(*plan.items[i]);
}

/// Pushes a slice of a bulk item, or its front, to a memory driver. Returns false if the driver is full.
bool write_bulk(Context& context, Rail& rail, Request& request, const BulkSlice& slice) {
  Peer& peer = *rail.peer;
  drivers::Driver& driver = *rail.instance->driver;
  iovec pieces[most_bulk_pieces];
  std::size_t size = 0;
  const std::uint64_t most = std::min<std::uint64_t>(driver.capabilities().max_bulk, slice.length);
  const int count = bulk_pieces(request, {slice.offset, most}, pieces, context.bulk_staging, &size);
  if (count == 0) {  // the user's description ended early
    context.bulk_sent(peer, request, request.expected - request.moved);
    return true;
  }
  if (driver.bulk_send(peer.rank, word_of(request.transfer_id), slice.offset, pieces, count, size, nullptr) !=
      Status::ok)
    return false;
  note_handed(context, rail, request, size);
  peer.counters.add(Counter::packets_sent);
  context.trace(Event::bulk_sent, peer.rank, request.session, request.status_tag, size);
  context.bulk_sent(peer, request, size);
  return true;
}

/// Finds the pieces of a slice, or of its front. Tiny pieces are copied into one piece in `staging`: packets of a few
/// bytes each would cost more than the copy.
int bulk_pieces(const Request& request, const BulkSlice& slice, iovec* pieces, std::vector<std::byte>& staging,
                std::size_t* size) {
  constexpr std::size_t tiny = 256, room = 16 * 1024;
  const auto most = static_cast<std::size_t>(slice.length);
  const int count = data::pieces(request.data, slice.offset, most, pieces, most_bulk_pieces, size);
  if (*size >= most || *size >= tiny * most_bulk_pieces || count == 0) return count;
  if (staging.size() < room) staging.resize(room);
  *size = data::gather(request.data, slice.offset, std::min(most, room), staging.data());
  pieces[0] = {staging.data(), *size};
  return 1;
}

// ---- a driver that makes system calls -------------------------------------------------------------------------------

void flush_system(Context& context, Peer& peer) {
  Rail& rail = *peer.rail;
  if (rail.transmit != Transmit::idle || peer.backlog->empty() || delay(context, peer)) return;
  const drivers::Capabilities& capabilities = rail.instance->driver->capabilities();
  rail.packet = new_packet(context);
  Packet& packet = *rail.packet;
  peer.backlog->plan({capabilities.max_packet, true}, packet.plan);
  assert(packet.plan.count > 0 && "a backlog that is not empty has a plan");
  if (packet.plan.items[0]->kind == strategies::Kind::bulk) {
    const Request& request = request_of(*packet.plan.items[0]);
    stage_bulk(packet, capabilities, request, rest_of(request));
  } else {
    for (int i = 0; i < packet.plan.count; ++i) packet.plan.items[i]->queued = false;
    peer.queued_bytes -= packet.plan.size;
    stage_items(context, peer, packet);
  }
  transition(rail, Transmit::staged);
  rail.instance->push_flush(rail);
}

/// Decides on an aggregation delay. Returns true, and lists the rail as delayed, if it pays to wait for more items
/// until the next progress call. It pays if a packet has left lately and the next one is not full.
bool delay(Context& context, Peer& peer) {
  Rail& rail = *peer.rail;
  const drivers::Capabilities& capabilities = rail.instance->driver->capabilities();
  if (capabilities.gap_ns == 0 || context.flush_delayed || peer.queued_bytes >= capabilities.max_packet) return false;
  if (context.sleeper.occupied()) return false;  // no thread would end the delay
  const bool long_ago = context.platform.now_ns() - rail.last_packet_ns > capabilities.gap_ns;
  if (long_ago && !CANELE_BUGGIFY(lull)) return false;
  if (!rail.delayed) {
    CANELE_COVER(rail_delayed);
    rail.delayed = true;
    context.delayed_rails.push_back(&rail);
  }
  return true;
}

/// Describes the planned items by the staging memory and the pieces of the packet. Items whose bytes were copied have
/// left; the others stay in the plan.
void stage_items(Context& context, Peer& peer, Packet& packet) {
  Plan& plan = packet.plan;
  count_packet(context, peer, plan);
  if (packet.staging.size() < plan.size) packet.staging.resize(peer.rail->instance->driver->capabilities().max_packet);
  std::byte* out = packet.staging.data();
  int staying = 0;
  for (int i = 0; i < plan.count; ++i) {
    strategies::Item& item = *plan.items[i];
    const Written written = context.write_item(peer, item, out, &packet);
    add_piece(packet, out, static_cast<std::size_t>(written.end - out));
    out = written.end;
    if (written.references) {
      const canele_data_t& d = request_of(item).data;
      add_piece(packet, d.base, d.length);
      plan.items[staying++] = &item;
    } else {
      context.item_sent(item);
    }
  }
  plan.count = staying;
}

/// Adds a piece to the packet. Joins it to the last piece if the two touch.
void add_piece(Packet& packet, const void* base, std::size_t size) {
  if (size == 0) return;
  packet.size += size;
  if (packet.piece_count > 0) {
    iovec& last = packet.pieces[packet.piece_count - 1];
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == base) {
      last.iov_len += size;
      return;
    }
  }
  assert(packet.piece_count < Packet::max_pieces);
  packet.pieces[packet.piece_count++] = {const_cast<void*>(base), size};
}

/// Describes a slice of a bulk item, or its front, by the pieces of the packet.
void stage_bulk(Packet& packet, const drivers::Capabilities& capabilities, const Request& request,
                const BulkSlice& slice) {
  const std::size_t longest = CANELE_BUGGIFY(short_slice) ? 1000 : 512 * 1024;  // small messages get a turn in between
  packet.bulk = true;
  packet.transfer_id = request.transfer_id;
  packet.bulk_offset = slice.offset;
  const std::uint64_t most = std::min<std::uint64_t>({longest, capabilities.max_bulk, slice.length});
  packet.piece_count = bulk_pieces(request, {slice.offset, most}, packet.pieces, packet.staging, &packet.size);
}

/// Notes which rail carries bytes of a transfer, where a peer has several. Once rails have all bytes, the item leaves
/// the backlog.
void note_handed(const Context& context, Rail& rail, Request& request, std::uint64_t bytes) {
  Peer& peer = *rail.peer;
  if (peer.rail_group == nullptr || !peer.rail_group->sequenced) return;
  request.bulk_rails |= bulk_bit(rail);
  rail.pace.hand(bytes, context.platform.now_ns());
  request.item.bytes_left -= bytes;
  if (request.item.bytes_left == 0) dequeue_bulk(peer, request);
}

}  // namespace

void driver_returned(Context& context, Rail& rail) {
  Peer& peer = *rail.peer;
  const bool connects = rail.transmit == Transmit::connecting;
  assert(rail.in_flush());
  if (connects) transition(rail, Transmit::idle);
  if (peer.disconnected()) {
    const bool taken = !connects && rail.result == drivers::Status::pending;
    if (taken) {
      CANELE_COVER(packet_of_disconnected_pending);
      transition(rail, Transmit::sending);  // until the driver gives the packet back
    } else {
      CANELE_COVER(packet_of_disconnected_dropped);
      context.drop_packet(rail);
    }
    return;
  }
  if (connects) {
    if (rail.result == drivers::Status::failed && !rail.is_connected()) context.rail_failed(rail);
    context.mark_backlogged(peer);
    return;
  }
  if (rail.connection == Connection::failed) {
    CANELE_COVER(packet_taken_back_late);
    sequencing::take_back(context, rail);
    return;
  }
  rail.last_packet_ns = context.platform.now_ns();
  for (const DeferredRegistration& late : rail.packet->late) late.request->registration = late.handle;
  rail.packet->late.clear();
  switch (rail.result) {
    case drivers::Status::ok:
      packet_done(context, rail, drivers::Status::ok);
      break;
    case drivers::Status::pending:
      CANELE_COVER(packet_pending);
      transition(rail, Transmit::sending);
      break;
    case drivers::Status::full:
      CANELE_COVER(packet_found_full);
      transition(rail, Transmit::refused);
      break;
    case drivers::Status::failed:
      transition(rail, Transmit::failing);
      break;
  }
}

void packet_done(Context& context, Rail& rail, drivers::Status status) {
  if (rail.packet == nullptr || rail.connection == Connection::failed) return;
  if (rail.peer->disconnected()) {
    CANELE_COVER(packet_of_disconnected_done);
    return context.drop_packet(rail);
  }
  assert(status == drivers::Status::ok);
  static_cast<void>(status);
  release_staged(context, rail);
  context.mark_backlogged(*rail.peer);
}

namespace {

void release_staged(Context& context, Rail& rail) {
  std::unique_ptr<Packet> packet = std::move(rail.packet);  // so that the rail holds no request any more
  Peer& peer = *rail.peer;
  if (packet->bulk) {
    Request& request = request_of(*packet->plan.items[0]);
    const bool current = packet->transfer_id == request.transfer_id;  // not of a grant that a lost rail has ended
    context.trace(Event::bulk_sent, peer.rank, request.session, request.status_tag, packet->size);
    context.bulk_sent(peer, request, current ? packet->size : 0);
  } else {
    for (int i = 0; i < packet->plan.count; ++i) context.item_sent(*packet->plan.items[i]);
  }
  free_packet(context, std::move(packet));
  rail.unacked.reset();
  transition(rail, Transmit::idle);
}

}  // namespace

// ---- for sequencing.cpp, too ----------------------------------------------------------------------------------------

bool send_bulk(Context& context, Rail& rail, Request& request, const BulkSlice& slice) {
  if (rail.instance->memory_only()) {
    if (write_bulk(context, rail, request, slice)) return true;
    transition(rail, Transmit::full);
    return false;
  }
  rail.packet = new_packet(context);
  rail.packet->plan.put(request.item);
  stage_bulk(*rail.packet, rail.instance->driver->capabilities(), request, slice);
  note_handed(context, rail, request, rail.packet->size);
  transition(rail, Transmit::staged);
  rail.instance->push_flush(rail);
  return true;
}

void count_packet(Context& context, Peer& peer, const Plan& plan) {
  int envelopes = 0;
  for (int i = 0; i < plan.count; ++i) envelopes += plan.items[i]->kind == strategies::Kind::envelope;
  peer.counters.add(Counter::packets_sent);
  context.trace(Event::packet_sent, peer.rank, nullptr, 0, plan.size);
  if (envelopes > 1) context.counters.add(Counter::aggregated_chunks, static_cast<std::uint64_t>(envelopes - 1));
}

}  // namespace canele::comm::link
