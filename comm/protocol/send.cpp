// SPDX-License-Identifier: BSD-3-Clause
//
// Send, steps 1 to 3 and 6: a posted message chooses its protocol, joins the backlog of its peer, and completes. Steps
// 4 and 5 are in link/transmit.cpp.
//
// The protocol is chosen before the driver is known if there was no contact with the peer before. The smallest eager
// limit then counts.
#include "comm/protocol/send.hpp"

#include <algorithm>
#include <cstring>

#include "comm/multicast/multicast.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/send_fast.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::send_path {

using strategies::Item;

std::size_t eager_limit(const Engine& engine, const DriverSlot& slot) {
  constexpr std::size_t heads = sizeof(wire::Head) + wire::chunk_size(wire::long_size) + sizeof(std::uint64_t);
  const std::size_t room = slot.driver->capabilities().max_packet - heads;
  return engine.eager_setting != 0 ? std::min<std::size_t>(room, engine.eager_setting) : room;
}

std::size_t eager_limit(const Engine& engine, const Peer& peer) {
  std::size_t limit = ~std::size_t{0};
  const auto fits = [&](const DriverSlot& slot) { limit = std::min(limit, eager_limit(engine, slot)); };
  const DriverSlot* const known = peer.rail->slot;
  const bool settled = known != nullptr && peer.state == Peer::State::up;
  // The message may have to go by any driver of the group, or of the groups that were not tried yet.
  for (const auto& slot : engine.slots) {
    if (known == nullptr || slot->group == known->group || (!settled && slot->group > known->group)) fits(*slot);
  }
  return limit;
}

void announce(Engine& engine, Peer& peer, const Session& session) {
  if (!peer.names.tell(session.wire, session.epoch)) return;
  control(engine, peer, wire::Type::session, 0, session.epoch, static_cast<std::uint16_t>(session.wire),
          session.label.data(), session.label.size());
}

bool leave_in_packet(Engine& engine, Peer& peer, const Session& session, std::uint64_t tag, const void* buffer,
                     std::size_t length) {
  if (length >= peer.rail->at_once_below) return false;
  drivers::Driver& driver = *peer.rail->slot->driver;
  const std::size_t size = wire::chunk_size(length);
  const std::span<std::byte> room = driver.reserve(peer.rank, size);
  if (room.empty()) {
    CANELE_MARK(packet_at_once_found_full);
    peer.rail->full = true;
    return false;
  }
  CANELE_MARK(left_in_packet_at_once);
  const auto number = static_cast<std::uint16_t>(session.wire);
  // The head is written last, right before the driver announces the packet. The receiver may be looking at the line of
  // the head, and would fetch it twice. The signal fence only keeps the compiler from moving the copy behind the head.
  data::copy_across(room.data() + size - length, static_cast<const std::byte*>(buffer), length);
  std::atomic_signal_fence(std::memory_order_release);
  wire::put_head(room.data(), {tag, peer.next_out, number, wire::Type::eager, 0}, length);
  driver.commit(peer.rank, size);
  note_departure(engine, peer, driver, session, tag, length);
  return true;
}

namespace {

/// Chooses rendezvous or eager, by the length of the message.
void choose_protocol(const Engine& engine, const Peer& peer, Request& request) {
  const bool asked = request.rendezvous;  // a multicast has asked for rendezvous
  request.rendezvous = asked || request.data.length > eager_limit(engine, peer) || CANELE_BUGGIFY(rendezvous);
}

const Leg& leg_of(const Request& request) { return static_cast<const Leg&>(request); }

/// Returns the most bytes that the envelope can take in a packet.
std::size_t size_in_packet(const Request& request) {
  if (!request.rendezvous) {
    return wire::chunk_size(request.data.length + (request.synchronous ? sizeof(std::uint64_t) : 0));
  }
  const std::size_t ahead = request.offering                     ? sizeof(wire::Offer)
                            : request.part == Request::Part::leg ? multicast::route_size(leg_of(request))
                                                                 : 0;
  return wire::chunk_size(ahead + sizeof(wire::Rts) + request.header + drivers::Exposure::max_size);
}

}  // namespace

void count_message(Engine& engine, Peer& peer, const Request& request) {
  count(engine, peer, request.data.length, request.rendezvous ? Counter::rendezvous_sent : Counter::eager_sent);
}

[[gnu::cold]] void ring(Engine& engine, const Rail& rail) {
  engine.departures.ring(*rail.slot->driver, rail.peer->rank);
  engine.counters.add(Counter::doorbells_sent);
}

bool admit(Engine& engine, Request& request) {
  engine.trace(Event::send_posted, request.rank, request.session, request.status_tag, request.data.length);
  ++engine.pending_sends;
  if (request.part != Request::Part::deposited) ++request.session->pending;
  Peer& peer = engine.peer(request.rank);
  if (peer.gone()) {
    CANELE_MARK(send_to_the_gone);
    engine.finish(request, peer.error);
    return false;
  }
  announce(engine, peer, *request.session);
  choose_protocol(engine, peer, request);
  return flow_out::admit(engine, peer, request);
}

void accept(Engine& engine, Request& request) {
  if (admit(engine, request)) join_backlog(engine, engine.peer(request.rank), request);
}

void join_backlog(Engine& engine, Peer& peer, Request& request) {
  if (!request.offering) count_message(engine, peer, request);  // an offer counts when it is taken
  request.item.kind = strategies::Kind::envelope;
  request.item.size = static_cast<std::uint32_t>(size_in_packet(request));
  request.item.flow_session = request.session->number;
  request.item.flow_tag = request.session->order_across_tags ? 0 : request.status_tag;
  enqueue(engine, peer, request.item);
}

void enqueue(Engine& engine, Peer& peer, Item& item) {
  assert(!item.queued);
  item.queued = true;
  item.age = ++peer.next_age;
  peer.queued_bytes += item.size;
  peer.backlog->add(item);
  engine.mark_dirty(peer);
}

void control(Engine& engine, Peer& peer, wire::Type type, std::uint64_t tag, std::uint32_t seq, std::uint16_t session,
             const void* payload, std::size_t size) {
  if (peer.gone()) return;
  Control& c = engine.controls.make();
  assert(size <= sizeof c.payload);
  c.head = {tag, seq, session, type, 0};
  c.payload_size = static_cast<std::uint8_t>(size);
  if (size != 0) std::memcpy(c.payload, payload, size);
  c.size = static_cast<std::uint32_t>(wire::chunk_size(size));
  enqueue(engine, peer, c);
}

namespace {

std::byte* write_control(const Control& c, std::byte* out) {
  out = wire::put_head(out, c.head, c.payload_size);
  std::memcpy(out, c.payload, c.payload_size);
  return out + c.payload_size;
}

/// Writes a request to send at `out`, and returns its end. A withheld send is written as an offer instead. `staged`:
/// the packet of a driver that exposes memory only when it gets the packet, else nullptr. `offered`: the offered
/// receive that the message is for, else nullptr.
std::byte* write_rts(Engine& engine, Peer& peer, Request& request, wire::Head head, std::byte* out, Packet* staged,
                     const Adverts::Theirs* offered) {
  engine.trace(Event::rts_sent, peer.rank, request.session, request.status_tag, request.data.length);
  if (request.handle == 0) request.handle = engine.sends.add(request);
  const bool routed = request.part == Request::Part::leg;
  const bool confirm = routed || (peer.bundle != nullptr && peer.bundle->numbers);
  drivers::Exposure exposure;
  if (request.part == Request::Part::shelved) {
    exposure = leg_of(request).whole->shelved;
  } else if (request.part == Request::Part::deposited) {
    exposure = deposit::copy_of(request).exposure;
  } else if (!multicast::is_served(request)) {
    rendezvous::expose(peer, request, exposure);
  }
  const std::size_t late = staged != nullptr && !confirm ? fetch::room(*peer.rail, request) : 0;
  wire::Rts rts{};
  rts.handle = request.handle;
  rts.length = request.data.length;
  rts.header = request.header;
  rts.exposure = static_cast<std::uint16_t>(exposure.size + late);
  rts.exposed = exposure.size != 0 ? peer.rail->slot->mark() : 0;
  rts.synchronous = request.synchronous;
  rts.confirm = confirm;
  request.confirm = confirm;
  if (offered != nullptr) {
    Claims claims(peer.rail->lines.theirs[offered->line], offered->generation);
    if (claims.take()) {
      CANELE_MARK(offer_taken);
      rts.receive = offered->key;
      shared_copy::send(engine, request, peer, claims, *offered);
    }
  }
  const std::size_t payload = sizeof rts + rts.header + rts.exposure;
  if (request.offering) {
    const wire::Offer offer = flow_out::describe(peer, request);
    head.type = wire::Type::offer;
    head.seq = peer.withheld->batch_number;
    out = wire::put_head(out, head, sizeof offer + payload);
    std::memcpy(out, &offer, sizeof offer);
    out += sizeof offer;
  } else if (routed) {
    head.type = wire::Type::cast;
    out = wire::put_head(out, head, multicast::route_size(leg_of(request)) + payload);
    out = multicast::write_route(engine, leg_of(request), out);
  } else {
    head.type = wire::Type::rts;
    out = wire::put_head(out, head, payload);
  }
  std::byte* const rts_at = out;
  std::memcpy(out, &rts, sizeof rts);
  out += sizeof rts;
  out += data::gather(request.data, 0, rts.header, out);
  if (late != 0) fetch::expose_later(*staged, request, rts_at, {out, late});
  std::memcpy(out, exposure.bytes, exposure.size);
  return out + rts.exposure;
}

}  // namespace

Written write_item(Engine& engine, Peer& peer, Item& item, std::byte* out, Packet* staged) {
  constexpr std::size_t copy_limit = 2048;  // shorter payloads cost a gathering driver less to copy than one more piece
  if (item.kind == strategies::Kind::control) return {write_control(static_cast<Control&>(item), out)};
  Request& request = request_of(item);
  const auto session = static_cast<std::uint16_t>(request.session->wire);
  if (request.offering) {
    return {write_rts(engine, peer, request, {request.status_tag, 0, session, wire::Type::offer, 0}, out, nullptr,
                      nullptr)};
  }
  const wire::Head head{request.status_tag, peer.next_out++, session, wire::Type::eager, 0};
  peer.recent.note(head.seq, head.session, head.tag);
  Adverts::Theirs offered;
  const bool is_offered = advert::consume(engine, peer, *request.session, head.tag, &offered);
  const bool bound = is_offered && request.part == Request::Part::none && advert::pays(engine, peer, request);
  if (request.rendezvous) {
    std::byte* const end = write_rts(engine, peer, request, head, out, staged, bound ? &offered : nullptr);
    peer.recent.announced(head.seq, request.handle);
    return {end};
  }
  const std::size_t length = request.data.length;
  if (request.synchronous) {
    if (request.handle == 0) request.handle = engine.sends.add(request);
    wire::Head sync = head;
    sync.type = wire::Type::eager_sync;
    out = wire::put_head(out, sync, length + sizeof request.handle);
    std::memcpy(out, &request.handle, sizeof request.handle);
    out += sizeof request.handle;
  } else {
    out = wire::put_head(out, head, length);
    if (staged != nullptr && length >= copy_limit && request.data.segments == nullptr) return {out, true};
  }
  return {out + data::gather(request.data, 0, length, out)};
}

void item_left(Engine& engine, Item& item) {
  if (item.kind == strategies::Kind::control) {
    engine.controls.release(static_cast<Control&>(item));
    return;
  }
  Request& request = request_of(item);
  if (request.offering) {
    request.offering = false;  // the send stays withheld until its offer is taken
  } else if (request.rendezvous || request.synchronous) {
    request.stage = Request::Stage::moving;  // from now on the peer knows of the send, and may answer
  } else {
    engine.finish(request, CANELE_OK);
  }
}

void bulk_left(Engine& engine, Peer& peer, Request& request, std::size_t bytes) {
  request.moved += bytes;
  engine.watch.moved();
  assert(request.moved <= request.expected);
  if (request.moved < request.expected) return;
  if (request.item.queued) {
    peer.backlog->remove(request.item);
    request.item.queued = false;
  }
  if (request.confirm && !request.confirmed) {  // a rail may still lose the bytes
    CANELE_MARK(stream_sent_not_confirmed);
    if (request.part == Request::Part::forward) multicast::paused(engine, request);
    return;
  }
  engine.sends.remove(request.handle);
  engine.finish(request, CANELE_OK);
}

void reprioritize(Engine& engine, ReprioritizeOp& op) {
  Request& request = *op.request;
  const bool waits = request.kind == Request::Kind::send && request.stage == Request::Stage::posted;
  if (waits && request.withheld && !request.item.queued) {
    // Withheld sends leave in order, whatever their priority. The bulk data that follows obeys it.
    request.item.priority = op.priority;
    op.result = CANELE_OK;
  } else if (!waits || !request.item.queued) {
    op.result = CANELE_ESTATE;
  } else {
    CANELE_MARK(priority_raised);
    const std::int32_t before = request.item.priority;
    request.item.priority = op.priority;
    engine.peer(request.rank).backlog->reprioritized(request.item, before);
    op.result = CANELE_OK;
  }
  op.answered.store(true, std::memory_order_release);  // pairs with the acquire of the caller that waits for it
}

}  // namespace canele::comm::send_path
