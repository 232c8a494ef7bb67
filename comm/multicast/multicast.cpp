// SPDX-License-Identifier: BSD-3-Clause
//
// The root's half. state.hpp has the picture. Read begin() top-down.
//
// A destination for which there is no credit, or that is reached through memory, is sent to directly. A withheld
// envelope would keep the ranks waiting that it serves, and memory is copied by all receivers at once.
#include "comm/multicast/multicast.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>

#include "comm/link/queue.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/payload.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {
namespace multicast {
namespace {

/// Marks a multicast as ended, and moves lowest_id on to the oldest one that has not ended everywhere.
void retire(Casts& casts, std::uint32_t id) {
  casts.ended[id - casts.lowest_id] = true;
  while (!casts.ended.empty() && casts.ended.front()) {
    casts.ended.pop_front();
    ++casts.lowest_id;
  }
}

/// Tells the ranks that a lost server would have served to ask us.
void reroute(Context& context, const Multicast& whole, const Leg& leg) {
  for (const std::uint32_t rank : leg.serves) {
    Peer& peer = context.peer(static_cast<int>(rank));
    if (peer.gone()) continue;
    CANELE_MARK(multicast_rerouted);
    const std::int32_t root = context.rank;
    link::control(context, peer, wire::Type::elsewhere, whole.id, 0, 0, &root, sizeof root);
  }
}

void end(Context& context, Multicast& op) {
  const auto whole = context.casts.ours.extract(op.id);
  retire(context.casts, op.id);
  if (op.shelf != nullptr) op.shelf->driver->withdraw(op.shelved.handle);
  context.finish(*op.request, op.error);
}

void leg_over(Context& context, CallOp& op) {
  Leg& leg = static_cast<Leg&>(*static_cast<Internal::Over&>(op).owner);
  Multicast& whole = *leg.whole;
  if (whole.outcomes != nullptr) whole.outcomes[leg.index] = leg.status_error;
  if (leg.status_error != CANELE_OK) {
    CANELE_MARK(multicast_leg_failed);
    whole.error = leg.status_error;
    reroute(context, whole, leg);
  }
  if (--whole.left == 0) end(context, whole);
}

void prepare(Leg& leg, Multicast& whole, int index) {
  const Request& user = *whole.request;
  const auto i = static_cast<std::size_t>(index);
  prepare_internal(leg, *user.context, *user.session, whole.ranks[i], leg_over);
  leg.whole = &whole;
  leg.index = index;
  leg.status_tag = user.status_tag;
  leg.status_length = user.status_length;
  leg.data = user.data;
  leg.header = user.header;
  leg.tick = user.tick;
  leg.item.priority = whole.priorities[i];
}

/// Returns whether this peer may get the data from another rank, or hand it on. It may not if it is reached through
/// memory: there it copies from our memory itself. Nor over another link that stays on this host, unless a shape was
/// asked for: such links share the processors that we send by.
bool is_far(const Peer& peer, Shape forced) {
  if (peer.gone()) return false;
  const DriverSlot* slot = peer.rail->slot;
  return slot == nullptr || (!slot->memory_only() && (forced != Shape::automatic || !peer.rail->local));
}

/// Returns the link to the destinations: the first that is known speaks for all.
const DriverSlot& link_to(const Context& context, const std::vector<Leg*>& far) {
  for (const Leg* leg : far) {
    const Peer* peer = context.peers[leg->rank];
    if (peer->rail->slot != nullptr && peer->state == Peer::State::up) return *peer->rail->slot;
  }
  return *context.slots.back();
}

/// Returns the shape that the program or the user wants; automatic if neither has chosen one.
Shape forced_shape(const Context& context, const Multicast& whole) {
  return whole.shape != Shape::automatic ? whole.shape : context.casts.forced;
}

Shape shape_for(const Context& context, const Multicast& whole, const std::vector<Leg*>& far) {
  const auto count = static_cast<std::uint32_t>(far.size());
  const Shape forced = forced_shape(context, whole);
  if (count < 2 || count > most_destinations || whole.request->data.length == 0) return Shape::flat;
  if (forced != Shape::automatic) return forced;
  const std::uint64_t eager = send_path::eager_limit(context, *context.peers[far.front()->rank]);
  const DriverSlot& link = link_to(context, far);
  const std::uint64_t piece = link.driver->capabilities().get ? fetched_piece : streamed_piece;
  return choose(count, whole.request->data.length, link.costs, eager, piece);
}

/// Marks the legs whose destinations find the data on the shelf.
void mark_shelved(const Context& context, Multicast& whole) {
  for (std::size_t i = 0; whole.shelf != nullptr && i < whole.ranks.size(); ++i) {
    Leg& leg = whole.legs[i];
    const Peer* peer = context.peers[leg.rank];
    if (peer->gone() || peer->rail->slot != whole.shelf || peer->bundle != nullptr) continue;
    CANELE_MARK(multicast_shelved);
    leg.part = Request::Part::shelved;
    leg.rendezvous = true;
  }
}

/// Decides which destination serves which. `tree`: the legs of the tree, the most urgent first.
void lay_out(Shape shape, const std::vector<Leg*>& tree) {
  for (std::uint32_t p = 1; p <= tree.size(); ++p) {
    Leg& leg = *tree[p - 1];
    const std::uint32_t server = server_of(shape, p);
    leg.part = Request::Part::leg;
    if (server == 0) continue;
    leg.server = tree[server - 1]->rank;
    tree[server - 1]->serves.push_back(static_cast<std::uint32_t>(leg.rank));
    assert(tree[server - 1]->serves.size() <= most_served);
  }
}

}  // namespace
}  // namespace multicast

void prepare_internal(Internal& request, Context& context, Session& session, int to, void (*over)(Context&, CallOp&)) {
  request.over.kind = OpKind::call;
  request.over.call = over;
  request.over.owner = &request;
  request.word.store(std::uint64_t{event::finalized} << RequestWord::wanted_shift, std::memory_order_relaxed);
  request.callback = [](canele_request_t* ended, unsigned, void*) {
    Internal& internal = static_cast<Internal&>(request_of(ended));
    internal.context->submit(internal.over);
  };
  request.context = &context;
  request.session = &session;
  request.kind = Request::Kind::send;
  request.stage = Request::Stage::posted;
  request.rank = to;
  new (&request.item) strategies::Item;
}

namespace multicast {

void begin(Context& context, CallOp& op) {
  auto& whole = static_cast<Multicast&>(op);
  Request& user = *whole.request;
  const std::size_t count = whole.ranks.size();
  ++context.pending_sends;
  ++user.session->pending;
  user.stage = Request::Stage::moving;
  whole.id = context.casts.next_id++;
  context.casts.ours[whole.id].reset(&whole);
  context.casts.ended.push_back(false);
  context.counters.add(Counter::multicasts_sent);
  whole.left = count;
  if (count == 0) return end(context, whole);

  whole.legs = std::make_unique<Leg[]>(count);
  std::vector<Leg*> legs(count), far, tree;
  for (std::size_t i = 0; i < count; ++i) prepare(*(legs[i] = &whole.legs[i]), whole, static_cast<int>(i));
  std::stable_sort(legs.begin(), legs.end(),
                   [](const Leg* a, const Leg* b) { return a->item.priority > b->item.priority; });
  const Shape forced = forced_shape(context, whole);
  std::copy_if(legs.begin(), legs.end(), std::back_inserter(far),
               [&](const Leg* leg) { return is_far(context.peer(leg->rank), forced); });
  const Shape shape = shape_for(context, whole, far);
  if (shape == Shape::flat) far.clear();
  for (Leg* leg : far) leg->rendezvous = true;
  mark_shelved(context, whole);

  // All envelopes are paid for before any destination is told to rely on another.
  for (Leg* leg : legs) leg->paid = send_path::admit(context, *leg);
  std::copy_if(far.begin(), far.end(), std::back_inserter(tree), [](const Leg* leg) { return leg->paid; });
  if (tree.size() >= 2) lay_out(shape, tree);
  for (Leg* leg : legs) {
    if (leg->paid) send_path::join_backlog(context, context.peer(leg->rank), *leg);
  }
}

std::size_t route_size(const Leg& leg) { return sizeof(wire::Route) + leg.serves.size() * sizeof(std::uint32_t); }

std::byte* write_route(const Context& context, const Leg& leg, std::byte* out) {
  const wire::Route route{leg.whole->id, context.casts.lowest_id, leg.server,
                          static_cast<std::uint32_t>(leg.serves.size())};
  std::memcpy(out, &route, sizeof route);
  out += sizeof route;
  if (route.serves != 0) std::memcpy(out, leg.serves.data(), leg.serves.size() * sizeof(std::uint32_t));
  return out + leg.serves.size() * sizeof(std::uint32_t);
}

}  // namespace multicast
}  // namespace canele::comm
