// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half. state.hpp has the picture.
//
// A child's CTS may come before the envelope that announces the multicast, and after the data has been released. What
// is remembered of a multicast tells the two cases apart. It is remembered until the root says that the multicast has
// ended everywhere.
#include "comm/multicast/relay.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/multicast/relay_buffer.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/receive_rts.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {
namespace multicast {
namespace {

void notify(Context& context, Peer& peer, wire::Type type, const IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  const std::int32_t root = incoming.root;
  link::send_control(context, peer, {.type = type, .tag = incoming.id, .payload = link::bytes_of(root)});
}

IncomingMulticast& make(Context& context, int root, std::uint32_t id) CANELE_UNDER_LOCK {
  auto& slot = context.multicasts.incoming[MulticastState::key_of(root, id)];
  slot = std::make_unique<IncomingMulticast>();
  slot->root = root;
  slot->id = id;
  ++context.multicasts.unannounced;
  return *slot;
}

void erase(Context& context, const IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  if (!incoming.announced) --context.multicasts.unannounced;
  context.multicasts.incoming.erase(MulticastState::key_of(incoming.root, incoming.id));
}

Child* find_child(IncomingMulticast& incoming, int rank) {
  const auto found = std::find_if(incoming.children.begin(), incoming.children.end(),
                                  [&](const Child& child) { return child.rank == rank; });
  return found == incoming.children.end() ? nullptr : &*found;
}

bool has_child_send(const IncomingMulticast& incoming) {
  return std::any_of(incoming.children.begin(), incoming.children.end(),
                     [](const Child& child) { return child.send != nullptr; });
}

/// Redirects to the root a child that waits here in vain.
void redirect_child(Context& context, IncomingMulticast& incoming, Child& child) CANELE_UNDER_LOCK {
  CANELE_COVER(child_redirected);
  child.asked = false;
  child.done = true;
  Peer& peer = context.peer(child.rank);
  notify(context, peer, wire::Type::multicast_redirect, incoming);
}

/// Gives memory back to its owners, when no child send reads it any more.
void release_if_unused(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  if (incoming.waiting && (incoming.relay_buffer != nullptr || !has_child_send(incoming))) {
    incoming.waiting = false;
    incoming.closed = true;
    context.finish(*std::exchange(incoming.receive, nullptr), incoming.outcome);
  }
  if (!incoming.closed || has_child_send(incoming) || incoming.fetching != nullptr || incoming.receive != nullptr)
    return;
  relay_buffer::drop(context, incoming);
  for (Child& child : incoming.children) {
    if (child.asked) redirect_child(context, incoming, child);
  }
  const bool all_done =
      std::all_of(incoming.children.begin(), incoming.children.end(), [](const Child& child) { return child.done; });
  if (incoming.announced && all_done) erase(context, incoming);
}

/// Cleans up after a child send. Runs some time after the send was finalized.
void on_child_send_done(Context& context, CallOp& op) CANELE_UNDER_LOCK {
  auto& send = static_cast<ChildSend&>(*static_cast<InternalRequest::OnComplete&>(op).owner);
  IncomingMulticast& incoming = *send.multicast;
  Child& child = *find_child(incoming, send.rank);
  child.done = true;
  child.asked = false;
  child.send.reset();
  release_if_unused(context, incoming);
}

void end_child_send(Context& context, Request& send, int error) CANELE_UNDER_LOCK {
  context.sends.remove(send.handle);
  context.finish(send, error);
}

/// Sends what is available and has not been sent.
void forward_available(Context& context, const IncomingMulticast& incoming, Child& child) CANELE_UNDER_LOCK {
  ChildSend& send = *child.send;
  const std::uint64_t upto = std::min(incoming.available, child.cts.offset + child.cts.length);
  if (send.finalized() || upto <= send.expected) return;
  if (send.transfer_id == Handle::none) return;  // a rail was lost: the child asks again
  send.expected = upto;
  if (send.item.queued) return link::note_bytes_left(context.peer(child.rank), send);
  const std::int32_t priority = send.item.priority;
  send.item = strategies::Item{};
  send.item.kind = strategies::Kind::bulk;
  send.item.priority = priority;
  link::note_bytes_left(context.peer(child.rank), send);
  link::enqueue(context, context.peer(child.rank), send.item);
}

void begin_child_send(Context& context, IncomingMulticast& incoming, Child& child,
                      const canele_data_t& data) CANELE_UNDER_LOCK {
  CANELE_COVER(child_send_begun);
  child.send = std::make_unique<ChildSend>();
  ChildSend& send = *child.send;
  send.multicast = &incoming;
  prepare_internal(send, context, context.multicasts.session, child.rank, on_child_send_done);
  ++context.multicasts.session.pending;
  ++context.pending_sends;
  send.role = Request::InternalRole::child_send;
  transition(send, Request::Stage::moving);
  send.rendezvous = send.needs_fin = true;
  send.tick = context.watch.tick();
  send.data = data;
  send.status_length = incoming.length;
  send.handle = context.sends.add(send);
  context.counters.add(Counter::multicasts_forwarded);
  context.counters.add(Counter::bytes_forwarded, child.cts.length);
}

/// Answers a child's CTS: the child gets what is available, or is redirected.
void answer_cts(Context& context, IncomingMulticast& incoming, Child& child) CANELE_UNDER_LOCK {
  if (child.send == nullptr) {
    if (incoming.closed) return redirect_child(context, incoming, child);
    const canele_data_t* data = relay_buffer::source(incoming);
    if (data == nullptr && incoming.receive == nullptr && relay_buffer::begin(context, incoming))
      data = relay_buffer::source(incoming);
    if (data == nullptr && incoming.receive != nullptr) data = &incoming.receive->data;
    if (data == nullptr) return redirect_child(context, incoming, child);
    begin_child_send(context, incoming, child, *data);
  }
  ChildSend& send = *child.send;
  send.transfer_id = child.cts.key;
  send.moved = send.expected = child.cts.offset;
  forward_available(context, incoming, child);
  on_available_sent(context, send);
}

/// Gives up a multicast of which no more data will come. Each child is redirected as soon as the data that it was
/// granted has been sent.
void give_up(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  incoming.closed = incoming.failed = true;
  for (Child& child : incoming.children) {
    if (child.send != nullptr) on_available_sent(context, *child.send);
  }
}

void forward_to_children(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  for (Child& child : incoming.children) {
    if (child.send != nullptr) forward_available(context, incoming, child);
  }
}

/// Forgets the multicasts of a root that have ended everywhere.
void forget_below(Context& context, int root, std::uint32_t lowest) CANELE_UNDER_LOCK {
  std::uint32_t& known = context.multicasts.lowest[root];
  if (lowest <= known) return;
  known = lowest;
  std::vector<IncomingMulticast*> old;
  for (auto& [key, incoming] : context.multicasts.incoming) {
    const bool idle = !has_child_send(*incoming) && incoming->fetching == nullptr && incoming->receive == nullptr;
    if (incoming->root == root && incoming->id < lowest && idle && incoming->relay_buffer == nullptr)
      old.push_back(incoming.get());
  }
  for (const IncomingMulticast* incoming : old) erase(context, *incoming);
}

/// Forgets a multicast that no envelope has announced, unless a child waits for it here.
void forget_unannounced(Context& context, const IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  const bool waits =
      std::any_of(incoming.children.begin(), incoming.children.end(), [](const Child& child) { return child.asked; });
  if (!incoming.announced && !incoming.redirected && !waits) erase(context, incoming);
}

bool fits(const IncomingMulticast& incoming, const wire::MulticastCts& cts) {
  return cts.length <= incoming.length && cts.offset <= incoming.length - cts.length;
}

/// Redirects a rank whose CTS is for an unknown multicast, or does not fit. The root may have told one of the two
/// ranks wrong.
Verdict redirect(Context& context, Peer& peer, std::uint32_t id, std::int32_t root) CANELE_UNDER_LOCK {
  CANELE_COVER_RARE(cts_redirected);
  link::send_control(context, peer,
                     {.type = wire::Type::multicast_redirect, .tag = id, .payload = link::bytes_of(root)});
  return Verdict::ok();
}

/// Returns whether the multicast has ended, or can never come.
bool is_past(const Context& context, std::int32_t root, std::uint32_t id) CANELE_UNDER_LOCK {
  const auto lowest = context.multicasts.lowest.find(root);
  const Peer* peer = context.peers[root];
  return (lowest != context.multicasts.lowest.end() && id < lowest->second) ||
         (peer != nullptr && peer->disconnected());
}

Verdict take_root(const Context& context, std::span<const std::byte> payload, std::int32_t& root) {
  if (!wire::take(payload, root) || root < 0 || root >= context.size || root == context.rank) {
    return Verdict::violation("a multicast message names no root");
  }
  return Verdict::ok();
}

}  // namespace

IncomingMulticast* find(Context& context, int root, std::uint32_t id) {
  const auto found = context.multicasts.incoming.find(MulticastState::key_of(root, id));
  return found == context.multicasts.incoming.end() ? nullptr : found->second.get();
}

namespace {

/// A route as it came.
struct Announced {
  wire::Route route;
  std::span<const std::byte> children;  ///< ranks, four bytes each
};

/// Reads the route of an envelope from `root`. Returns the verdict on it.
Verdict take_route(Context& context, const Peer& root, std::span<const std::byte>& payload,
                   Announced& out) CANELE_UNDER_LOCK {
  wire::Route& route = out.route;
  if (!wire::take(payload, route) || route.children > most_children ||
      payload.size() < route.children * sizeof(std::uint32_t)) {
    return Verdict::violation("the route of a multicast has a wrong length");
  }
  if (route.parent < -1 || route.parent >= context.size || route.parent == context.rank || route.parent == root.rank ||
      route.id == 0 || route.id < route.lowest) {
    return Verdict::violation("the route of a multicast is malformed");
  }
  if (const IncomingMulticast* incoming = find(context, root.rank, route.id);
      incoming != nullptr && incoming->announced) {
    return Verdict::violation("a multicast arrived twice");
  }
  out.children = payload.first(route.children * sizeof(std::uint32_t));
  payload = payload.subspan(out.children.size());
  std::uint32_t ranks[most_children];
  std::memcpy(ranks, out.children.data(), out.children.size());
  std::sort(ranks, ranks + route.children);
  const bool twice = std::adjacent_find(ranks, ranks + route.children) != ranks + route.children;
  const bool strange = std::any_of(ranks, ranks + route.children, [&](std::uint32_t rank) {
    return rank >= static_cast<std::uint32_t>(context.size) || rank == static_cast<std::uint32_t>(context.rank) ||
           rank == static_cast<std::uint32_t>(root.rank) || rank == static_cast<std::uint32_t>(route.parent);
  });
  return twice || strange ? Verdict::violation("the route of a multicast names an invalid rank") : Verdict::ok();
}

/// Notes the envelope of a multicast that has come, and has been matched. Returns its IncomingMulticast.
IncomingMulticast& note_announced(Context& context, const Peer& root, const Announced& announced, const wire::Rts& rts,
                                  Session& session) CANELE_UNDER_LOCK {
  const wire::Route& route = announced.route;
  forget_below(context, root.rank, route.lowest);
  IncomingMulticast* incoming = find(context, root.rank, route.id);
  if (incoming == nullptr) incoming = &make(context, root.rank, route.id);
  assert(!incoming->announced && "take_route() has checked");
  CANELE_COVER(multicast_announced);
  incoming->announced = true;
  --context.multicasts.unannounced;
  incoming->parent = route.parent;
  incoming->session = &session;
  incoming->root_handle = rts.handle;
  incoming->length = rts.length;
  for (std::uint32_t i = 0; i < route.children; ++i) {
    std::uint32_t rank;
    std::memcpy(&rank, announced.children.data() + i * sizeof rank, sizeof rank);
    Child* child = find_child(*incoming, static_cast<int>(rank));
    if (child == nullptr) child = &incoming->children.emplace_back();
    child->rank = static_cast<int>(rank);
    child->listed = true;
  }
  for (Child& child : incoming->children) {
    if (child.asked && (!child.listed || !fits(*incoming, child.cts))) redirect_child(context, *incoming, child);
  }
  return *incoming;
}

/// Serves the ranks that asked before the envelope came, when the message is kept.
void answer_early_cts(Context& context, IncomingMulticast& incoming) CANELE_UNDER_LOCK {
  for (Child& child : incoming.children) {
    if (child.asked && child.send == nullptr) answer_cts(context, incoming, child);
  }
}

/// The envelope of a multicast, while it is matched or kept.
class MulticastArrival final : public rendezvous::Arrival {
 public:
  MulticastArrival(Context& context, Peer& root) : context_(context), root_(root) {}
  std::uint32_t id() const override { return route.route.id; }
  Sink& announced(const wire::Rts& rts, Session& session) CANELE_UNDER_LOCK override {
    return note_announced(context_, root_, route, rts, session);
  }
  void rejected(int reason) CANELE_UNDER_LOCK override {
    multicast::on_rejected(context_, *find(context_, root_.rank, id()), reason);
  }
  void kept() CANELE_UNDER_LOCK override {
    if (IncomingMulticast* const incoming = find(context_, root_.rank, id()); incoming != nullptr)
      answer_early_cts(context_, *incoming);
  }

  Announced route;

 private:
  Context& context_;
  Peer& root_;
};

}  // namespace

Verdict on_multicast_rts(Context& context, Peer& root, const wire::Head& head, std::span<const std::byte> payload) {
  MulticastArrival arrival(context, root);
  if (const Verdict v = take_route(context, root, payload, arrival.route); !v.is_ok()) return v;
  return rendezvous::on_rts(context, root, head, payload, &arrival);
}

void on_rejected(Context& context, IncomingMulticast& incoming, int reason) {
  if (incoming.relay_buffer == nullptr) {
    rendezvous::fin(context, context.peer(incoming.root), incoming.root_handle, reason);
    incoming.closed = incoming.failed = true;
  } else if (incoming.relay_buffer->complete || incoming.failed) {
    incoming.closed = true;
  } else {
    incoming.dropped = true;
  }
  release_if_unused(context, incoming);
}

}  // namespace multicast

// ---- Sink: what the receive of a multicast asks ---------------------------------------------------------------------

bool IncomingMulticast::attach_receive(Context& context, Request& request) {
  if (multicast::relay_buffer::attach(context, request, *this)) return true;
  if (request.data.length < length) {
    CANELE_COVER(receive_too_short_to_relay);
    closed = true;
  }
  receive = &request;
  multicast::answer_early_cts(context, *this);
  return false;
}

Peer& IncomingMulticast::next_source(Context& context) const {
  if (parent >= 0 && !redirected) {
    Peer& asked = context.peer(parent);
    if (!asked.disconnected()) return asked;
  }
  return context.peer(root);
}

bool IncomingMulticast::request_data(Context& context, Request& request, Peer& from, std::uint64_t offset) {
  fetching = &request;
  bulk_begun = false;
  if (from.rank == root) return false;
  CANELE_COVER(multicast_cts_sent);
  const wire::MulticastCts cts{request.handle, offset, request.expected - offset, root, 0};
  link::send_control(context, from, {.type = wire::Type::multicast_cts, .tag = id, .payload = link::bytes_of(cts)});
  return true;
}

bool IncomingMulticast::outlives(const Peer& peer) const { return root != peer.rank; }

void IncomingMulticast::on_progress(Context& context, Request& request) {
  if (closed) return;
  available = request.moved;
  multicast::forward_to_children(context, *this);
}

void IncomingMulticast::on_done(Context& context, const Request&, Peer& from) {
  rendezvous::fin(context, context.peer(root), root_handle, CANELE_OK);
  if (from.rank != root) multicast::notify(context, from, wire::Type::multicast_done, *this);
}

void IncomingMulticast::on_receive_end(Context& context, Request& request, int with) {
  fetching = nullptr;
  const bool there = with == CANELE_OK || with == CANELE_ETRUNC;
  if (there && !closed) {
    available = length;
    multicast::forward_to_children(context, *this);
  } else if (!there) {
    multicast::give_up(context, *this);
  }
  if (request.role == Request::InternalRole::relay_buffer) {
    multicast::relay_buffer::on_filled(context, *this, with);
    if (dropped) closed = true;
  } else {
    receive = &request;
    outcome = with;
    waiting = true;
    if (multicast::has_child_send(*this) && relay_buffer == nullptr) {
      CANELE_COVER(received_while_relaying);
      request.status_error = static_cast<std::int16_t>(with);
      context.publish(request, event::received);
    }
  }
  multicast::release_if_unused(context, *this);
}

void IncomingMulticast::request_again(Context& context, Request& request) {
  Peer& from = next_source(context);
  if (from.disconnected()) {
    CANELE_COVER_RARE(multicast_without_source);
    receive_path::fail_receive(context, request, from.error);
    return;
  }
  CANELE_COVER(multicast_asked_again);
  rendezvous::grant(context, request, from, root_handle, request.moved);
}

namespace multicast {

Verdict on_multicast_cts(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  wire::MulticastCts cts;
  if (!wire::take(payload, cts)) return Verdict::violation("a multicast CTS is too short");
  if (cts.root < 0 || cts.root >= context.size || cts.root == context.rank || cts.root == peer.rank ||
      cts.length == 0 || cts.key == Handle::none || head.tag > ~std::uint32_t{0}) {
    return Verdict::violation("a multicast CTS is malformed");
  }
  const auto id = static_cast<std::uint32_t>(head.tag);
  IncomingMulticast* incoming = find(context, cts.root, id);
  if (incoming == nullptr) {
    if (is_past(context, cts.root, id) || context.multicasts.unannounced >= MulticastState::most_unannounced) {
      return redirect(context, peer, id, cts.root);
    }
    CANELE_COVER(cts_before_envelope);
    incoming = &make(context, cts.root, id);
  }
  Child* child = find_child(*incoming, peer.rank);
  if (incoming->announced && (child == nullptr || !fits(*incoming, cts))) return redirect(context, peer, id, cts.root);
  if (child == nullptr) {
    child = &incoming->children.emplace_back();
    child->rank = peer.rank;
  }
  if (child->send != nullptr && child->send->transfer_id != Handle::none)
    return Verdict::violation("it requests data of a multicast that it has been granted");
  child->asked = true;
  child->cts = cts;
  if (incoming->announced) answer_cts(context, *incoming, *child);
  return Verdict::ok();
}

Verdict on_multicast_done(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t root;
  if (const Verdict v = take_root(context, payload, root); !v.is_ok()) return v;
  IncomingMulticast* incoming = find(context, root, static_cast<std::uint32_t>(head.tag));
  Child* child = incoming != nullptr ? find_child(*incoming, peer.rank) : nullptr;
  if (child == nullptr) return Verdict::ok();
  if (child->send == nullptr) {  // it was redirected meanwhile, or it asked before the envelope came
    child->asked = false;
    child->done = true;
    forget_unannounced(context, *incoming);
    return Verdict::ok();
  }
  ChildSend& send = *child->send;
  if (send.finalized()) return Verdict::ok();
  if (send.moved != send.expected || peer.holds(send)) {  // a rail has not given the last of the memory back
    CANELE_COVER(done_before_rail_returned);
    const bool first = send.stage == Request::Stage::moving;  // a peer may repeat itself
    if (first) transition(send, Request::Stage::draining);
  } else {
    CANELE_COVER(child_send_done);
    end_child_send(context, send, CANELE_OK);
  }
  return Verdict::ok();
}

Verdict on_multicast_redirect(Context& context, Peer& peer, const wire::Head& head,
                              std::span<const std::byte> payload) {
  std::int32_t root;
  if (const Verdict v = take_root(context, payload, root); !v.is_ok()) return v;
  const auto id = static_cast<std::uint32_t>(head.tag);
  IncomingMulticast* incoming = find(context, root, id);
  const bool from_root = peer.rank == root;
  if (incoming == nullptr) {
    if (!from_root || context.multicasts.unannounced >= MulticastState::most_unannounced ||
        id < context.multicasts.lowest[root])
      return Verdict::ok();
    CANELE_COVER_RARE(redirect_before_envelope);
    incoming = &make(context, root, id);
    incoming->redirected = true;
    return Verdict::ok();
  }
  if ((!from_root && incoming->parent != peer.rank) || incoming->redirected) return Verdict::ok();
  if (from_root && incoming->bulk_begun) {
    CANELE_COVER_RARE(redirect_while_parent_sends);
    return Verdict::ok();  // the root has lost our parent, but we have not
  }
  CANELE_COVER(multicast_redirected);
  incoming->redirected = true;
  Request* const request = incoming->fetching;
  if (request == nullptr || request->receive.peer->rank == root) return Verdict::ok();
  if (from_root) notify(context, *request->receive.peer, wire::Type::multicast_done, *incoming);
  rendezvous::regrant(context, *request);
  return Verdict::ok();
}

void on_available_sent(Context& context, Request& request) {
  auto& send = static_cast<ChildSend&>(request);
  if (send.finalized() || send.moved != send.expected || send.item.queued) return;
  if (context.peer(send.rank).holds(send)) return;
  IncomingMulticast& incoming = *send.multicast;
  if (send.stage == Request::Stage::draining) {
    end_child_send(context, send, CANELE_OK);
  } else if (incoming.failed && send.transfer_id != Handle::none && send.expected < incoming.length) {
    CANELE_COVER(child_send_given_up);
    notify(context, context.peer(send.rank), wire::Type::multicast_redirect, incoming);
    end_child_send(context, send, CANELE_EPEER);
  }
}

/// Handles that the root is disconnected. Where its data has begun to come, the transfer ends in its own way. Otherwise
/// no rank needs to have any of the data.
void on_root_disconnected(Context& context, IncomingMulticast& incoming, const Peer& root) CANELE_UNDER_LOCK {
  CANELE_COVER(root_disconnected);
  Request* const request = incoming.fetching;
  const bool from_parent = request != nullptr && request->receive.peer->rank != incoming.root;
  if (from_parent && !incoming.bulk_begun) {
    CANELE_COVER(fetch_ended_with_its_root);
    notify(context, *request->receive.peer, wire::Type::multicast_done, incoming);
    context.transfers.remove(request->handle);
    incoming.on_receive_end(context, *request, root.error);
  } else if (request == nullptr && incoming.receive == nullptr && incoming.relay_buffer == nullptr) {
    if (!incoming.announced) --context.multicasts.unannounced;
    incoming.closed = incoming.announced = true;
    release_if_unused(context, incoming);
  }
}

void on_disconnected(Context& context, const Peer& peer) {
  std::vector<std::uint64_t> concerned;
  for (const auto& [key, incoming] : context.multicasts.incoming) {
    if (incoming->root == peer.rank || find_child(*incoming, peer.rank) != nullptr) concerned.push_back(key);
  }
  for (const std::uint64_t key : concerned) {
    IncomingMulticast& incoming = *context.multicasts.incoming.at(key);
    if (Child* child = find_child(incoming, peer.rank); child != nullptr && child->send == nullptr) {
      child->asked = false;
      child->done = true;
    }
    if (incoming.root == peer.rank) on_root_disconnected(context, incoming, peer);
  }
}

}  // namespace multicast
}  // namespace canele::comm
