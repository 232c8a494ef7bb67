// SPDX-License-Identifier: BSD-3-Clause
//
// Send, steps 1 and 2: a posted message chooses its protocol, and pays for its envelope. Step 3 is in link/queue.cpp,
// steps 4 and 5 are in link/transmit.cpp and write_item.cpp, and step 6 is in item_sent.cpp.
//
// The protocol is chosen before the driver is known if there was no contact with the peer before. The smallest eager
// limit then counts.
#include "comm/protocol/send.hpp"

#include <algorithm>

#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/send_fast.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::send_path {
namespace {

void choose_protocol(const Context& context, const Peer& peer, Request& request);

}  // namespace

void on_send_posted(Context& context, Request& request) {
  if (admit(context, request)) link::join_backlog(context, context.peer(request.rank), request);
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

void announce(Context& context, Peer& peer, const Session& session) {
  if (!peer.names.announce(session.wire, session.epoch)) return;
  link::send_control(context, peer,
                     {.type = wire::Type::session,
                      .seq = session.epoch,
                      .session = static_cast<std::uint16_t>(session.wire),
                      .payload = std::as_bytes(std::span(session.label))});
}

namespace {

/// Chooses rendezvous or eager, by the length of the message.
void choose_protocol(const Context& context, const Peer& peer, Request& request) {
  const bool asked = request.rendezvous;  // a multicast has asked for rendezvous
  request.rendezvous = asked || request.data.length > eager_limit(context, peer) || CANELE_BUGGIFY(rendezvous);
}

}  // namespace

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

std::size_t eager_limit(const Context& context) {
  std::size_t limit = ~std::size_t{0};
  for (const auto& instance : context.instances) limit = std::min(limit, eager_limit(context, *instance));
  return limit;
}

bool has_room(const Context& context, int destination, std::size_t length) {
  constexpr std::size_t most_queued = 64 * 1024;  // the driver has work meanwhile
  const Peer* const peer = context.peers[destination];
  if (peer == nullptr || peer->disconnected()) return true;
  const std::uint64_t cost = length <= eager_limit(context, *peer) ? wire::credit_cost_of_eager(length)
                                                                   : wire::credit_cost_of_rts(CANELE_HEADER_MAX);
  return cost <= peer->credit && peer->queued_bytes <= most_queued;
}

std::size_t eager_limit(const Context& context, const DriverInstance& instance) {
  constexpr std::size_t heads = sizeof(wire::Head) + wire::chunk_size(wire::long_size) + sizeof(std::uint64_t);
  const std::size_t room = instance.driver->capabilities().max_packet - heads;
  return context.eager_setting != 0 ? std::min<std::size_t>(room, context.eager_setting) : room;
}

// ---- the fast path: what send_fast.hpp leaves out of line -----------------------------------------------------------

bool send_reserved(Context& context, Peer& peer, const Session& session, std::uint64_t tag, const void* buffer,
                   std::size_t length) {
  if (length >= peer.rail->fast_limit) return false;
  drivers::Driver& driver = *peer.rail->instance->driver;
  const std::size_t size = wire::chunk_size(length);
  const std::span<std::byte> room = driver.reserve(peer.rank, size);
  if (room.empty()) {
    CANELE_COVER(fast_packet_found_full);
    transition(*peer.rail, Transmit::full);
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

}  // namespace

void update_fast_limits(const Context& context, Rail& rail) {
  const RtrTable* rtrs = rail.peer->rtr_table.get();
  const bool watch = rtrs != nullptr && !rtrs->remote.empty();  // each envelope may match one of them
  const bool fast = !watch && context.event_log == nullptr;
  rail.inline_limit = fast ? inline_limit(context, *rail.instance) : 0;
  rail.fast_limit = fast ? std::max(rail.inline_limit, fast_limit(context, *rail.instance)) : 0;
}

// ---- calls for a send that waits ------------------------------------------------------------------------------------

void reprioritize(Context& context, ReprioritizeOp& op) {
  Request& request = *op.request;
  const bool waits =
      request.kind == Request::Kind::send && (request.stage == Request::Stage::posted || request.is_blocked());
  if (waits && request.is_blocked() && !request.item.queued) {
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
