// SPDX-License-Identifier: BSD-3-Clause
//
// The root's half. state.hpp has the picture. Read begin() top-down.
//
// A destination for which there is no credit, or that is reached through memory, is sent to directly. A blocked
// envelope would keep the children of its destination waiting, and memory is copied by all receivers at once.
#include "comm/multicast/multicast.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>

#include "comm/link/queue.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {
namespace multicast {
namespace {

/// Marks a multicast as ended, and moves lowest_id on to the oldest one that has not ended everywhere.
void retire(MulticastState& multicasts, std::uint32_t id) CANELE_UNDER_LOCK {
  multicasts.ended[id - multicasts.lowest_id] = true;
  while (!multicasts.ended.empty() && multicasts.ended.front()) {
    multicasts.ended.pop_front();
    ++multicasts.lowest_id;
  }
}

/// Redirects to us the children of a lost parent.
void reroute(Context& context, const Multicast& multicast, const DestinationSend& send) CANELE_UNDER_LOCK {
  for (const std::uint32_t rank : send.children) {
    Peer& peer = context.peer(static_cast<int>(rank));
    if (peer.disconnected()) continue;
    CANELE_COVER(multicast_rerouted);
    const std::int32_t root = context.rank;
    link::send_control(context, peer,
                       {.type = wire::Type::multicast_redirect, .tag = multicast.id, .payload = link::bytes_of(root)});
  }
}

void end(Context& context, Multicast& op) CANELE_UNDER_LOCK {
  const auto multicast = context.multicasts.outgoing.extract(op.id);
  retire(context.multicasts, op.id);
  if (op.segment_driver != nullptr) op.segment_driver->driver->deregister(op.segment_key.handle);
  context.finish(*op.request, op.error);
}

void on_send_done(Context& context, CallOp& op) CANELE_UNDER_LOCK {
  DestinationSend& send = static_cast<DestinationSend&>(*static_cast<InternalRequest::OnComplete&>(op).owner);
  Multicast& multicast = *send.multicast;
  if (multicast.outcomes != nullptr) multicast.outcomes[send.index] = send.status_error;
  if (send.status_error != CANELE_OK) {
    CANELE_COVER(destination_send_failed);
    multicast.error = send.status_error;
    reroute(context, multicast, send);
  }
  if (--multicast.left == 0) end(context, multicast);
}

void prepare(DestinationSend& send, Multicast& multicast, int index) {
  const Request& user = *multicast.request;
  const auto i = static_cast<std::size_t>(index);
  prepare_internal(send, *user.context, *user.session, multicast.ranks[i], on_send_done);
  send.multicast = &multicast;
  send.index = index;
  send.status_tag = user.status_tag;
  send.status_length = user.status_length;
  send.data = user.data;
  send.header = user.header;
  send.tick = user.tick;
  send.item.priority = multicast.priorities[i];
}

/// Returns whether this peer may get the data from another rank, or forward it. It may not if it is reached through
/// memory: there it copies from our memory itself. Nor over another link that stays on this host, unless a shape was
/// asked for: such links share the processors that we send by.
bool is_far(const Peer& peer, Shape requested) {
  if (peer.disconnected()) return false;
  const DriverInstance* instance = peer.rail->instance;
  return instance == nullptr || (!instance->memory_only() && (requested != Shape::automatic || !peer.rail->local));
}

/// Returns the link to the destinations: the first that is known speaks for all.
const DriverInstance& link_to(const Context& context, const std::vector<DestinationSend*>& far) CANELE_UNDER_LOCK {
  for (const DestinationSend* send : far) {
    const Peer* peer = context.peers[send->rank];
    if (peer->rail->instance != nullptr && peer->state == Peer::State::up) return *peer->rail->instance;
  }
  return *context.instances.back();
}

/// Returns the shape that the program or the user wants; automatic if neither has chosen one.
Shape requested_shape(const Context& context, const Multicast& multicast) {
  return multicast.shape != Shape::automatic ? multicast.shape : context.multicasts.shape_override;
}

Shape shape_for(const Context& context, const Multicast& multicast,
                const std::vector<DestinationSend*>& far) CANELE_UNDER_LOCK {
  const auto count = static_cast<std::uint32_t>(far.size());
  const Shape requested = requested_shape(context, multicast);
  if (count < 2 || count > most_destinations || multicast.request->data.length == 0) return Shape::flat;
  if (requested != Shape::automatic) return requested;
  const std::uint64_t eager = send_path::eager_limit(context, *context.peers[far.front()->rank]);
  const DriverInstance& link = link_to(context, far);
  const std::uint64_t piece = link.driver->capabilities().get ? fetched_piece : streamed_piece;
  return choose(count, multicast.request->data.length, link.costs, eager, piece);
}

/// Marks the sends whose destinations find the data in the broadcast segment.
void mark_in_segment(const Context& context, Multicast& multicast) CANELE_UNDER_LOCK {
  for (std::size_t i = 0; multicast.segment_driver != nullptr && i < multicast.ranks.size(); ++i) {
    DestinationSend& send = multicast.sends[i];
    const Peer* peer = context.peers[send.rank];
    if (peer->disconnected() || peer->rail->instance != multicast.segment_driver || peer->rail_group != nullptr)
      continue;
    CANELE_COVER(multicast_in_segment);
    send.role = Request::InternalRole::in_segment;
    send.rendezvous = true;
  }
}

/// Decides which destination is the parent of which. `tree`: the sends of the tree, the most urgent first.
void lay_out(Shape shape, const std::vector<DestinationSend*>& tree) {
  for (std::uint32_t p = 1; p <= tree.size(); ++p) {
    DestinationSend& send = *tree[p - 1];
    const std::uint32_t parent = parent_of(shape, p);
    send.role = Request::InternalRole::destination_send;
    if (parent == 0) continue;
    send.parent = tree[parent - 1]->rank;
    tree[parent - 1]->children.push_back(static_cast<std::uint32_t>(send.rank));
    assert(tree[parent - 1]->children.size() <= most_children);
  }
}

}  // namespace
}  // namespace multicast

void prepare_internal(InternalRequest& request, Context& context, Session& session, int to,
                      void (*on_complete)(Context&, CallOp&)) {
  request.on_complete.kind = OpKind::call;
  request.on_complete.call = on_complete;
  request.on_complete.owner = &request;
  request.word.store(std::uint64_t{event::finalized} << RequestWord::wanted_shift, std::memory_order_relaxed);
  request.callback = [](canele_request_t* ended, unsigned, void*) {
    InternalRequest& internal = static_cast<InternalRequest&>(request_of(ended));
    internal.context->submit(internal.on_complete);
  };
  request.context = &context;
  request.session = &session;
  request.kind = Request::Kind::send;
  transition(request, Request::Stage::posted);
  request.rank = to;
  new (&request.item) strategies::Item;
}

namespace multicast {

void begin(Context& context, CallOp& op) {
  auto& multicast = static_cast<Multicast&>(op);
  Request& user = *multicast.request;
  const std::size_t count = multicast.ranks.size();
  ++context.pending_sends;
  ++user.session->pending;
  transition(user, Request::Stage::moving);
  multicast.id = context.multicasts.next_id++;
  context.multicasts.outgoing[multicast.id].reset(&multicast);
  context.multicasts.ended.push_back(false);
  context.counters.add(Counter::multicasts_sent);
  multicast.left = count;
  if (count == 0) return end(context, multicast);

  multicast.sends = std::make_unique<DestinationSend[]>(count);
  std::vector<DestinationSend*> sends(count), far, tree;
  for (std::size_t i = 0; i < count; ++i) prepare(*(sends[i] = &multicast.sends[i]), multicast, static_cast<int>(i));
  std::stable_sort(sends.begin(), sends.end(), [](const DestinationSend* a, const DestinationSend* b) {
    return a->item.priority > b->item.priority;
  });
  const Shape requested = requested_shape(context, multicast);
  std::copy_if(sends.begin(), sends.end(), std::back_inserter(far), [&](const DestinationSend* send) CANELE_UNDER_LOCK {
    return is_far(context.peer(send->rank), requested);
  });
  const Shape shape = shape_for(context, multicast, far);
  if (shape == Shape::flat) far.clear();
  for (DestinationSend* send : far) send->rendezvous = true;
  mark_in_segment(context, multicast);

  // All envelopes have credit before any destination is told to rely on another.
  for (DestinationSend* send : sends) send->has_credit = send_path::admit(context, *send);
  std::copy_if(far.begin(), far.end(), std::back_inserter(tree),
               [](const DestinationSend* send) { return send->has_credit; });
  if (tree.size() >= 2) lay_out(shape, tree);
  for (DestinationSend* send : sends) {
    if (send->has_credit) link::join_backlog(context, context.peer(send->rank), *send);
  }
}

std::size_t route_size(const DestinationSend& send) {
  return sizeof(wire::Route) + send.children.size() * sizeof(std::uint32_t);
}

std::byte* write_route(const Context& context, const DestinationSend& send, std::byte* out) {
  const wire::Route route{send.multicast->id, context.multicasts.lowest_id, send.parent,
                          static_cast<std::uint32_t>(send.children.size())};
  std::memcpy(out, &route, sizeof route);
  out += sizeof route;
  if (route.children != 0) std::memcpy(out, send.children.data(), send.children.size() * sizeof(std::uint32_t));
  return out + send.children.size() * sizeof(std::uint32_t);
}

}  // namespace multicast
}  // namespace canele::comm
