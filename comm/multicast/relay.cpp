// SPDX-License-Identifier: BSD-3-Clause
//
// A destination's half. state.hpp has the picture.
//
// A request to be served may come before the envelope that announces it, and after the data is gone. What is remembered
// of a multicast tells the two cases apart. It is remembered until the root says that the multicast has ended
// everywhere.
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
#include "ltask/mark.hpp"

namespace canele::comm {
namespace multicast {
namespace {

void tell(Context& context, Peer& peer, wire::Type type, const Cast& cast) {
  const std::int32_t root = cast.root;
  link::control(context, peer, type, cast.id, 0, 0, &root, sizeof root);
}

Cast& make(Context& context, int root, std::uint32_t id) {
  auto& slot = context.casts.of_others[Casts::key_of(root, id)];
  slot = std::make_unique<Cast>();
  slot->root = root;
  slot->id = id;
  ++context.casts.unknown;
  return *slot;
}

void erase(Context& context, const Cast& cast) {
  if (!cast.known) --context.casts.unknown;
  context.casts.of_others.erase(Casts::key_of(cast.root, cast.id));
}

Served* served_by_us(Cast& cast, int rank) {
  const auto found =
      std::find_if(cast.serves.begin(), cast.serves.end(), [&](const Served& one) { return one.rank == rank; });
  return found == cast.serves.end() ? nullptr : &*found;
}

bool is_serving(const Cast& cast) {
  return std::any_of(cast.serves.begin(), cast.serves.end(), [](const Served& one) { return one.forward != nullptr; });
}

/// Tells a rank that waits here in vain to ask the root.
void refuse(Context& context, Cast& cast, Served& one) {
  CANELE_MARK(forward_refused);
  one.asked = false;
  one.done = true;
  Peer& peer = context.peer(one.rank);
  tell(context, peer, wire::Type::elsewhere, cast);
}

/// Gives memory back to its owners, when no forward reads it any more.
void settle(Context& context, Cast& cast) {
  if (cast.waiting && (cast.stock != nullptr || !is_serving(cast))) {
    cast.waiting = false;
    cast.over = true;
    context.finish(*std::exchange(cast.receive, nullptr), cast.outcome);
  }
  if (!cast.over || is_serving(cast) || cast.fetching != nullptr || cast.receive != nullptr) return;
  stock::drop(context, cast);
  for (Served& one : cast.serves) {
    if (one.asked) refuse(context, cast, one);
  }
  const bool all_done = std::all_of(cast.serves.begin(), cast.serves.end(), [](const Served& one) { return one.done; });
  if (cast.known && all_done) erase(context, cast);
}

/// Cleans up after a forward. Runs some time after the forward was finalized.
void forward_over(Context& context, CallOp& op) {
  auto& forward = static_cast<Forward&>(*static_cast<Internal::Over&>(op).owner);
  Cast& cast = *forward.cast;
  Served& one = *served_by_us(cast, forward.rank);
  one.done = true;
  one.asked = false;
  one.forward.reset();
  settle(context, cast);
}

void end_forward(Context& context, Request& forward, int error) {
  context.sends.remove(forward.handle);
  context.finish(forward, error);
}

/// Sends what is available and has not been sent.
void feed(Context& context, const Cast& cast, Served& one) {
  Forward& forward = *one.forward;
  const std::uint64_t upto = std::min(cast.available, one.want.offset + one.want.length);
  if (forward.finalized() || upto <= forward.expected) return;
  if (forward.bulk_key == 0) return;  // a rail was lost: the destination asks again
  const bool idle = forward.moved == forward.expected;
  forward.expected = upto;
  if (!idle || forward.item.queued) return;
  const std::int32_t priority = forward.item.priority;
  forward.item = strategies::Item{};
  forward.item.kind = strategies::Kind::bulk;
  forward.item.priority = priority;
  link::enqueue(context, context.peer(one.rank), forward.item);
}

void begin_forward(Context& context, Cast& cast, Served& one, const canele_data_t& data) {
  CANELE_MARK(forward_begun);
  one.forward = std::make_unique<Forward>();
  Forward& forward = *one.forward;
  forward.cast = &cast;
  prepare_internal(forward, context, context.casts.own, one.rank, forward_over);
  ++context.casts.own.pending;
  ++context.pending_sends;
  forward.part = Request::Part::forward;
  forward.stage = Request::Stage::moving;
  forward.rendezvous = forward.confirm = true;
  forward.tick = context.watch.tick();
  forward.data = data;
  forward.status_length = cast.length;
  forward.handle = context.sends.add(forward);
  context.counters.add(Counter::multicasts_forwarded);
  context.counters.add(Counter::bytes_forwarded, one.want.length);
}

/// Serves a rank that has asked: it gets what is available, or is told that there will be nothing.
void serve(Context& context, Cast& cast, Served& one) {
  if (one.forward == nullptr) {
    if (cast.over) return refuse(context, cast, one);
    const canele_data_t* data = stock::source(cast);
    if (data == nullptr && cast.receive == nullptr && stock::begin(context, cast)) data = stock::source(cast);
    if (data == nullptr && cast.receive != nullptr) data = &cast.receive->data;
    if (data == nullptr) return refuse(context, cast, one);
    begin_forward(context, cast, one, *data);
  }
  Forward& forward = *one.forward;
  forward.bulk_key = one.want.key;
  forward.moved = forward.expected = one.want.offset;
  feed(context, cast, one);
  paused(context, forward);
}

/// Gives up a multicast of which no more data will come. Each rank that we serve is told as soon as what it was
/// promised has left.
void give_up(Context& context, Cast& cast) {
  cast.over = cast.failed = true;
  for (Served& one : cast.serves) {
    if (one.forward != nullptr) paused(context, *one.forward);
  }
}

void feed_all(Context& context, Cast& cast) {
  for (Served& one : cast.serves) {
    if (one.forward != nullptr) feed(context, cast, one);
  }
}

/// Forgets the multicasts of a root that have ended everywhere.
void forget_below(Context& context, int root, std::uint32_t lowest) {
  std::uint32_t& known = context.casts.lowest[root];
  if (lowest <= known) return;
  known = lowest;
  std::vector<Cast*> old;
  for (auto& [key, cast] : context.casts.of_others) {
    const bool idle = !is_serving(*cast) && cast->fetching == nullptr && cast->receive == nullptr;
    if (cast->root == root && cast->id < lowest && idle && cast->stock == nullptr) old.push_back(cast.get());
  }
  for (const Cast* cast : old) erase(context, *cast);
}

/// Forgets a multicast that no envelope has announced, unless a rank waits for it here.
void forget_unknown(Context& context, const Cast& cast) {
  const bool waits = std::any_of(cast.serves.begin(), cast.serves.end(), [](const Served& one) { return one.asked; });
  if (!cast.known && !cast.elsewhere && !waits) erase(context, cast);
}

bool fits(const Cast& cast, const wire::Want& want) {
  return want.length <= cast.length && want.offset <= cast.length - want.length;
}

/// Sends a rank away whose want is for an unknown multicast, or does not fit. The root may have told one of the two
/// ranks wrong.
const char* send_away(Context& context, Peer& peer, std::uint32_t id, std::int32_t root) {
  CANELE_RARE_MARK(wish_sent_away);
  link::control(context, peer, wire::Type::elsewhere, id, 0, 0, &root, sizeof root);
  return nullptr;
}

/// Returns whether the multicast has ended, or can never come.
bool is_past(const Context& context, std::int32_t root, std::uint32_t id) {
  const auto lowest = context.casts.lowest.find(root);
  const Peer* peer = context.peers[root];
  return (lowest != context.casts.lowest.end() && id < lowest->second) || (peer != nullptr && peer->gone());
}

const char* take_root(const Context& context, std::span<const std::byte> payload, std::int32_t& root) {
  if (!wire::take(payload, root) || root < 0 || root >= context.size || root == context.rank) {
    return "a multicast message names no root";
  }
  return nullptr;
}

}  // namespace

Cast* find(Context& context, int root, std::uint32_t id) {
  const auto found = context.casts.of_others.find(Casts::key_of(root, id));
  return found == context.casts.of_others.end() ? nullptr : found->second.get();
}

namespace {

/// A route as it came.
struct Announced {
  wire::Route route;
  std::span<const std::byte> serves;  ///< ranks, four bytes each
};

/// Reads the route of an envelope from `root`. Returns nullptr, or what is wrong with it.
const char* take_route(Context& context, const Peer& root, std::span<const std::byte>& payload, Announced& out) {
  wire::Route& route = out.route;
  if (!wire::take(payload, route) || route.serves > most_served ||
      payload.size() < route.serves * sizeof(std::uint32_t)) {
    return "the route of a multicast has a wrong length";
  }
  if (route.server < -1 || route.server >= context.size || route.server == context.rank || route.server == root.rank ||
      route.id == 0 || route.id < route.lowest) {
    return "the route of a multicast is malformed";
  }
  if (const Cast* cast = find(context, root.rank, route.id); cast != nullptr && cast->known) {
    return "a multicast arrived twice";
  }
  out.serves = payload.first(route.serves * sizeof(std::uint32_t));
  payload = payload.subspan(out.serves.size());
  std::uint32_t ranks[most_served];
  std::memcpy(ranks, out.serves.data(), out.serves.size());
  std::sort(ranks, ranks + route.serves);
  const bool twice = std::adjacent_find(ranks, ranks + route.serves) != ranks + route.serves;
  const bool strange = std::any_of(ranks, ranks + route.serves, [&](std::uint32_t rank) {
    return rank >= static_cast<std::uint32_t>(context.size) || rank == static_cast<std::uint32_t>(context.rank) ||
           rank == static_cast<std::uint32_t>(root.rank) || rank == static_cast<std::uint32_t>(route.server);
  });
  return twice || strange ? "the route of a multicast names an invalid rank" : nullptr;
}

/// Notes the envelope of a multicast that has come, and has been matched. Returns its Cast.
Cast& note_announced(Context& context, const Peer& root, const Announced& announced, const wire::Rts& rts,
                     Session& session) {
  const wire::Route& route = announced.route;
  forget_below(context, root.rank, route.lowest);
  Cast* cast = find(context, root.rank, route.id);
  if (cast == nullptr) cast = &make(context, root.rank, route.id);
  assert(!cast->known && "take_route() has looked");
  CANELE_MARK(multicast_announced);
  cast->known = true;
  --context.casts.unknown;
  cast->server = route.server;
  cast->session = &session;
  cast->send = rts.handle;
  cast->length = rts.length;
  for (std::uint32_t i = 0; i < route.serves; ++i) {
    std::uint32_t rank;
    std::memcpy(&rank, announced.serves.data() + i * sizeof rank, sizeof rank);
    Served* one = served_by_us(*cast, static_cast<int>(rank));
    if (one == nullptr) one = &cast->serves.emplace_back();
    one->rank = static_cast<int>(rank);
    one->listed = true;
  }
  for (Served& one : cast->serves) {
    if (one.asked && (!one.listed || !fits(*cast, one.want))) refuse(context, *cast, one);
  }
  return *cast;
}

/// Serves the ranks that asked before the envelope came, when the message is kept.
void serve_waiting(Context& context, Cast& cast) {
  for (Served& one : cast.serves) {
    if (one.asked && one.forward == nullptr) serve(context, cast, one);
  }
}

/// The envelope of a multicast, while it is matched or kept.
class CastArrival final : public rendezvous::Arrival {
 public:
  CastArrival(Context& context, Peer& root) : context_(context), root_(root) {}
  std::uint32_t id() const override { return route.route.id; }
  Sink& announced(const wire::Rts& rts, Session& session) override {
    return note_announced(context_, root_, route, rts, session);
  }
  void refused(int reason) override { multicast::refused(context_, *find(context_, root_.rank, id()), reason); }
  void kept() override {
    if (Cast* const cast = find(context_, root_.rank, id()); cast != nullptr) serve_waiting(context_, *cast);
  }

  Announced route;

 private:
  Context& context_;
  Peer& root_;
};

}  // namespace

const char* on_cast(Context& context, Peer& root, const wire::Head& head, std::span<const std::byte> payload) {
  CastArrival arrival(context, root);
  if (const char* wrong = take_route(context, root, payload, arrival.route); wrong != nullptr) return wrong;
  return rendezvous::on_rts(context, root, head, payload, &arrival);
}

void refused(Context& context, Cast& cast, int reason) {
  if (cast.stock == nullptr) {
    rendezvous::fin(context, context.peer(cast.root), cast.send, reason);
    cast.over = cast.failed = true;
  } else if (cast.stock->complete || cast.failed) {
    cast.over = true;
  } else {
    cast.dropped = true;
  }
  settle(context, cast);
}

}  // namespace multicast

// ---- Sink: what the receive of a multicast asks ---------------------------------------------------------------------

bool Cast::bound(Context& context, Request& request) {
  if (multicast::stock::takes_over(context, request, *this)) return true;
  if (request.data.length < length) {
    CANELE_MARK(receive_too_short_to_serve);
    over = true;
  }
  receive = &request;
  multicast::serve_waiting(context, *this);
  return false;
}

Peer& Cast::source(Context& context) const {
  if (server >= 0 && !elsewhere) {
    Peer& asked = context.peer(server);
    if (!asked.gone()) return asked;
  }
  return context.peer(root);
}

bool Cast::asks(Context& context, Request& request, Peer& from, std::uint64_t offset) {
  fetching = &request;
  landing = false;
  if (from.rank == root) return false;
  CANELE_MARK(multicast_wanted);
  const wire::Want want{request.handle, offset, request.expected - offset, root, 0};
  link::control(context, from, wire::Type::want, id, 0, 0, &want, sizeof want);
  return true;
}

bool Cast::outlives(const Peer& peer) const { return root != peer.rank; }

void Cast::advanced(Context& context, Request& request) {
  if (over) return;
  available = request.moved;
  multicast::feed_all(context, *this);
}

void Cast::fetched(Context& context, const Request&, Peer& from) {
  rendezvous::fin(context, context.peer(root), send, CANELE_OK);
  if (from.rank != root) multicast::tell(context, from, wire::Type::served, *this);
}

void Cast::received(Context& context, Request& request, int with) {
  fetching = nullptr;
  const bool there = with == CANELE_OK || with == CANELE_ETRUNC;
  if (there && !over) {
    available = length;
    multicast::feed_all(context, *this);
  } else if (!there) {
    multicast::give_up(context, *this);
  }
  if (request.part == Request::Part::stock) {
    multicast::stock::filled(context, *this, with);
    if (dropped) over = true;
  } else {
    receive = &request;
    outcome = with;
    waiting = true;
    if (multicast::is_serving(*this) && stock == nullptr) {
      CANELE_MARK(received_while_serving);
      request.status_error = static_cast<std::int16_t>(with);
      context.publish(request, event::received);
    }
  }
  multicast::settle(context, *this);
}

void Cast::ask_again(Context& context, Request& request) {
  Peer& from = source(context);
  if (from.gone()) {
    CANELE_RARE_MARK(multicast_without_source);
    receive_path::failed(context, request, from.error);
    return;
  }
  CANELE_MARK(multicast_asked_again);
  rendezvous::grant(context, request, from, send, request.moved);
}

namespace multicast {

const char* on_want(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  wire::Want want;
  if (!wire::take(payload, want)) return "a multicast CTS is too short";
  if (want.root < 0 || want.root >= context.size || want.root == context.rank || want.root == peer.rank ||
      want.length == 0 || want.key == 0 || head.tag > ~std::uint32_t{0}) {
    return "a multicast CTS is malformed";
  }
  const auto id = static_cast<std::uint32_t>(head.tag);
  Cast* cast = find(context, want.root, id);
  if (cast == nullptr) {
    if (is_past(context, want.root, id) || context.casts.unknown >= Casts::most_unknown) {
      return send_away(context, peer, id, want.root);
    }
    CANELE_MARK(wish_before_envelope);
    cast = &make(context, want.root, id);
  }
  Served* one = served_by_us(*cast, peer.rank);
  if (cast->known && (one == nullptr || !fits(*cast, want))) return send_away(context, peer, id, want.root);
  if (one == nullptr) {
    one = &cast->serves.emplace_back();
    one->rank = peer.rank;
  }
  if (one->forward != nullptr && one->forward->bulk_key != 0) return "it wants what it has been promised";
  one->asked = true;
  one->want = want;
  if (cast->known) serve(context, *cast, *one);
  return nullptr;
}

const char* on_served(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t root;
  if (const char* wrong = take_root(context, payload, root); wrong != nullptr) return wrong;
  Cast* cast = find(context, root, static_cast<std::uint32_t>(head.tag));
  Served* one = cast != nullptr ? served_by_us(*cast, peer.rank) : nullptr;
  if (one == nullptr) return nullptr;
  if (one->forward == nullptr) {  // it was refused meanwhile, or it asked before the envelope came
    one->asked = false;
    one->done = true;
    forget_unknown(context, *cast);
    return nullptr;
  }
  Forward& forward = *one->forward;
  if (forward.finalized()) return nullptr;
  if (forward.moved != forward.expected) {  // the rail has not given the last of the memory back
    CANELE_MARK(served_before_the_rail_let_go);
    forward.confirmed = true;
  } else {
    CANELE_MARK(forward_served);
    end_forward(context, forward, CANELE_OK);
  }
  return nullptr;
}

const char* on_elsewhere(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t root;
  if (const char* wrong = take_root(context, payload, root); wrong != nullptr) return wrong;
  const auto id = static_cast<std::uint32_t>(head.tag);
  Cast* cast = find(context, root, id);
  const bool from_root = peer.rank == root;
  if (cast == nullptr) {
    if (!from_root || context.casts.unknown >= Casts::most_unknown || id < context.casts.lowest[root]) return nullptr;
    CANELE_RARE_MARK(elsewhere_before_envelope);
    cast = &make(context, root, id);
    cast->elsewhere = true;
    return nullptr;
  }
  if ((!from_root && cast->server != peer.rank) || cast->elsewhere) return nullptr;
  if (from_root && cast->landing) {
    CANELE_RARE_MARK(elsewhere_while_served);
    return nullptr;  // the root has lost our server, but we have not
  }
  CANELE_MARK(told_elsewhere);
  cast->elsewhere = true;
  Request* const request = cast->fetching;
  if (request == nullptr || request->receive.peer->rank == root) return nullptr;
  if (from_root) tell(context, *request->receive.peer, wire::Type::served, *cast);
  rendezvous::grant_again(context, *request);
  return nullptr;
}

void paused(Context& context, Request& request) {
  auto& forward = static_cast<Forward&>(request);
  if (forward.finalized() || forward.moved != forward.expected || forward.item.queued) return;
  Cast& cast = *forward.cast;
  if (forward.confirmed) {
    end_forward(context, forward, CANELE_OK);
  } else if (cast.failed && forward.bulk_key != 0 && forward.expected < cast.length) {
    CANELE_MARK(forward_given_up);
    tell(context, context.peer(forward.rank), wire::Type::elsewhere, cast);
    end_forward(context, forward, CANELE_EPEER);
  }
}

/// Handles that the root is gone. Where its data has begun to come, the transfer ends in its own way. Otherwise no rank
/// needs to have any of the data.
void root_gone(Context& context, Cast& cast, const Peer& root) {
  CANELE_MARK(root_is_gone);
  Request* const request = cast.fetching;
  const bool served = request != nullptr && request->receive.peer->rank != cast.root;
  if (served && !cast.landing) {
    CANELE_MARK(fetch_ended_with_its_root);
    tell(context, *request->receive.peer, wire::Type::served, cast);
    context.transfers.remove(request->handle);
    cast.received(context, *request, root.error);
  } else if (request == nullptr && cast.receive == nullptr && cast.stock == nullptr) {
    if (!cast.known) --context.casts.unknown;
    cast.over = cast.known = true;
    settle(context, cast);
  }
}

void gone(Context& context, const Peer& peer) {
  std::vector<std::uint64_t> concerned;
  for (const auto& [key, cast] : context.casts.of_others) {
    if (cast->root == peer.rank || served_by_us(*cast, peer.rank) != nullptr) concerned.push_back(key);
  }
  for (const std::uint64_t key : concerned) {
    Cast& cast = *context.casts.of_others.at(key);
    if (Served* one = served_by_us(cast, peer.rank); one != nullptr && one->forward == nullptr) {
      one->asked = false;
      one->done = true;
    }
    if (cast.root == peer.rank) root_gone(context, cast, peer);
  }
}

}  // namespace multicast
}  // namespace canele::comm
