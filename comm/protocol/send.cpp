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

#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/send_fast.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::send_path {

using strategies::Item;

std::size_t eager_limit(const Context& context, const DriverInstance& instance) {
  constexpr std::size_t heads = sizeof(wire::Head) + wire::chunk_size(wire::long_size) + sizeof(std::uint64_t);
  const std::size_t room = instance.driver->capabilities().max_packet - heads;
  return context.eager_setting != 0 ? std::min<std::size_t>(room, context.eager_setting) : room;
}

std::size_t eager_limit(const Context& context, const Peer& peer) {
  std::size_t limit = ~std::size_t{0};
  const auto fits = [&](const DriverInstance& instance) { limit = std::min(limit, eager_limit(context, instance)); };
  const DriverInstance* const known = peer.rail->instance;
  const bool established = known != nullptr && peer.state == Peer::State::up;
  // The message may have to go by any driver of the group, or of the groups that were not tried yet.
  for (const auto& instance : context.instances) {
    if (known == nullptr || instance->group == known->group || (!established && instance->group > known->group))
      fits(*instance);
  }
  return limit;
}

void announce(Context& context, Peer& peer, const Session& session) {
  if (!peer.names.announce(session.wire, session.epoch)) return;
  link::send_control(context, peer,
                     {.type = wire::Type::session,
                      .seq = session.epoch,
                      .session = static_cast<std::uint16_t>(session.wire),
                      .payload = std::as_bytes(std::span(session.label))});
}

bool send_reserved(Context& context, Peer& peer, const Session& session, std::uint64_t tag, const void* buffer,
                   std::size_t length) {
  if (length >= peer.rail->fast_limit) return false;
  drivers::Driver& driver = *peer.rail->instance->driver;
  const std::size_t size = wire::chunk_size(length);
  const std::span<std::byte> room = driver.reserve(peer.rank, size);
  if (room.empty()) {
    CANELE_COVER(fast_packet_found_full);
    peer.rail->full = true;
    return false;
  }
  CANELE_COVER(sent_fast_in_packet);
  const auto number = static_cast<std::uint16_t>(session.wire);
  // The head is written last, right before the driver announces the packet. The receiver may be looking at the line of
  // the head, and would fetch it twice. The signal fence only keeps the compiler from moving the copy behind the head.
  data::copy_across(room.data() + size - length, static_cast<const std::byte*>(buffer), length);
  std::atomic_signal_fence(std::memory_order_release);
  wire::put_head(room.data(), {tag, peer.next_out, number, wire::Type::eager, 0}, length);
  driver.commit(peer.rank, size);
  account_send(context, peer, driver, {session, tag, buffer, length});
  return true;
}

namespace {

/// Returns the limit of one inline send of a memory driver: messages must be shorter than this, in bytes.
std::size_t inline_limit(const Context& context, const DriverInstance& instance) {
  const std::size_t room =
      std::min(instance.driver->capabilities().max_inline, sizeof(wire::Head) + Rail::longest_inline);
  if (!instance.memory_only() || room < sizeof(wire::Head)) return 0;
  const std::size_t limit = context.eager_setting != 0 ? context.eager_setting : room;
  return std::min(limit, room - sizeof(wire::Head)) + 1;
}

/// Returns the limit of a message in a packet of its own, written directly into the driver's memory.
std::size_t fast_limit(const Context& context, const DriverInstance& instance) {
  if (!instance.memory_only() || !instance.driver->capabilities().reserves) return 0;
  return std::min(eager_limit(context, instance), Rail::longest_fast) + 1;
}

/// Looks for an RTR of the peer for an envelope that is being written for (session, tag). Returns true, and forgets the
/// RTR here, if the envelope is for it.
bool consume(Context& context, Peer& peer, const Session& session, std::uint64_t tag, RtrTable::RemoteRtr* remote_rtr) {
  if (peer.rtr_table == nullptr) return false;
  std::vector<RtrTable::RemoteRtr>& theirs = peer.rtr_table->remote;
  const auto found = peer.rtr_table->find(session.number, tag);
  if (found == theirs.end()) return false;
  *remote_rtr = *found;
  theirs.erase(found);
  update_fast_limits(context, *peer.rail);
  return true;
}

/// Chooses rendezvous or eager, by the length of the message.
void choose_protocol(const Context& context, const Peer& peer, Request& request) {
  const bool asked = request.rendezvous;  // a multicast has asked for rendezvous
  request.rendezvous = asked || request.data.length > eager_limit(context, peer) || CANELE_BUGGIFY(rendezvous);
}

/// Returns the most bytes that the envelope can take in a packet.
std::size_t size_in_packet(const Context& context, const Request& request) {
  if (!request.rendezvous) {
    return wire::chunk_size(request.data.length + (request.synchronous ? sizeof(std::uint64_t) : 0));
  }
  const std::size_t ahead = request.advertising                                       ? sizeof(wire::BlockedEnvelope)
                            : request.role == Request::InternalRole::destination_send ? context.route_size(request)
                                                                                      : 0;
  return wire::chunk_size(ahead + sizeof(wire::Rts) + request.header + drivers::MemoryKey::max_size);
}

}  // namespace

void update_fast_limits(const Context& context, Rail& rail) {
  const RtrTable* rtrs = rail.peer->rtr_table.get();
  const bool watch = rtrs != nullptr && !rtrs->remote.empty();  // each envelope may match one of them
  const bool fast = !watch && context.event_log == nullptr;
  rail.inline_limit = fast ? inline_limit(context, *rail.instance) : 0;
  rail.fast_limit = fast ? std::max(rail.inline_limit, fast_limit(context, *rail.instance)) : 0;
}

void count_message(Context& context, Peer& peer, const Request& request) {
  count(context, peer, request.data.length, request.rendezvous ? Counter::rendezvous_sent : Counter::eager_sent);
}

int decode_outcome(std::uint32_t word) {
  constexpr auto no_memory = static_cast<std::uint32_t>(-CANELE_ENOMEM);
  constexpr auto let_go = static_cast<std::uint32_t>(-CANELE_ECANCELED);
  if (word == 0) return CANELE_OK;
  return word == no_memory ? CANELE_ENOMEM : word == let_go ? CANELE_ECANCELED : CANELE_EPEER;
}

bool admit(Context& context, Request& request) {
  context.trace(Event::send_posted, request.rank, request.session, request.status_tag, request.data.length);
  ++context.pending_sends;
  if (request.role != Request::InternalRole::buffered) ++request.session->pending;
  Peer& peer = context.peer(request.rank);
  if (peer.disconnected()) {
    CANELE_COVER(send_to_disconnected);
    context.finish(request, peer.error);
    return false;
  }
  announce(context, peer, *request.session);
  choose_protocol(context, peer, request);
  return credit_sender::consume_credit(context, peer, request);
}

void on_send_posted(Context& context, Request& request) {
  if (admit(context, request)) join_backlog(context, context.peer(request.rank), request);
}

void join_backlog(Context& context, Peer& peer, Request& request) {
  if (!request.advertising) count_message(context, peer, request);  // a blocked envelope counts when it is taken
  request.item.kind = strategies::Kind::envelope;
  request.item.size = static_cast<std::uint32_t>(size_in_packet(context, request));
  request.item.flow_session = request.session->number;
  request.item.flow_tag = request.session->order_across_tags ? 0 : request.status_tag;
  link::enqueue(context, peer, request.item);
}

namespace {

std::byte* write_control(const Control& c, std::byte* out) {
  out = wire::put_head(out, c.head, c.payload_size);
  std::memcpy(out, c.payload, c.payload_size);
  return out + c.payload_size;
}

}  // namespace

Written write_item(Context& context, Peer& peer, Item& item, std::byte* out, Packet* staged) {
  constexpr std::size_t copy_limit = 2048;  // shorter payloads cost a gathering driver less to copy than one more piece
  if (item.kind == strategies::Kind::control) return {write_control(static_cast<Control&>(item), out)};
  Request& request = request_of(item);
  const auto session = static_cast<std::uint16_t>(request.session->wire);
  if (request.advertising) {
    return {context.write_rts(
        peer, request, {{request.status_tag, 0, session, wire::Type::blocked_envelope, 0}, out, nullptr}, nullptr)};
  }
  const wire::Head head{request.status_tag, peer.next_out++, session, wire::Type::eager, 0};
  peer.recent.note(head.seq, head.session, head.tag);
  RtrTable::RemoteRtr remote_rtr;
  const bool has_rtr = consume(context, peer, *request.session, head.tag, &remote_rtr);
  if (request.rendezvous) {
    std::byte* const end = context.write_rts(peer, request, {head, out, staged}, has_rtr ? &remote_rtr : nullptr);
    peer.recent.announced(head.seq, request.handle);
    return {end};
  }
  const std::size_t length = request.data.length;
  if (request.synchronous) {
    if (request.handle == 0) request.handle = context.sends.add(request);
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

void item_sent(Context& context, Item& item) {
  if (item.kind == strategies::Kind::control) {
    context.controls.release(static_cast<Control&>(item));
    return;
  }
  Request& request = request_of(item);
  if (request.advertising) {
    request.advertising = false;  // the send stays blocked until its envelope is taken
  } else if (request.rendezvous || request.synchronous) {
    request.stage = Request::Stage::moving;  // from now on the peer knows of the send, and may answer
  } else {
    context.finish(request, CANELE_OK);
  }
}

void bulk_sent(Context& context, Peer& peer, Request& request, std::size_t bytes) {
  request.moved += bytes;
  context.watch.moved();
  assert(request.moved <= request.expected);
  if (request.moved < request.expected) return;
  if (request.item.queued) {
    peer.backlog->remove(request.item);
    request.item.queued = false;
  }
  if (request.needs_fin && !request.fin_received) {  // a rail may still lose the bytes
    CANELE_COVER(stream_sent_without_fin);
    if (request.role == Request::InternalRole::child_send) context.forward_paused(request);
    return;
  }
  context.sends.remove(request.handle);
  context.finish(request, CANELE_OK);
}

void reprioritize(Context& context, ReprioritizeOp& op) {
  Request& request = *op.request;
  const bool waits = request.kind == Request::Kind::send && request.stage == Request::Stage::posted;
  if (waits && request.credit_blocked && !request.item.queued) {
    // Blocked sends leave in order, whatever their priority. The bulk data that follows obeys it.
    request.item.priority = op.priority;
    op.result = CANELE_OK;
  } else if (!waits || !request.item.queued) {
    op.result = CANELE_ESTATE;
  } else {
    CANELE_COVER(priority_raised);
    const std::int32_t before = request.item.priority;
    request.item.priority = op.priority;
    context.peer(request.rank).backlog->reprioritized(request.item, before);
    op.result = CANELE_OK;
  }
  op.answered.store(true, std::memory_order_release);  // pairs with the acquire of the caller that waits for it
}

}  // namespace canele::comm::send_path
