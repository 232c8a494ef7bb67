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

#include "comm/multicast/relay_buffer.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::multicast {
namespace {

void tell(Engine& engine, Peer& peer, wire::Type type, const Cast& cast) {
  const std::int32_t root = cast.root;
  send_path::control(engine, peer, type, cast.id, 0, 0, &root, sizeof root);
}

Cast& make(Engine& engine, int root, std::uint32_t id) {
  auto& slot = engine.casts.of_others[Casts::key_of(root, id)];
  slot = std::make_unique<Cast>();
  slot->root = root;
  slot->id = id;
  ++engine.casts.unknown;
  return *slot;
}

void erase(Engine& engine, const Cast& cast) {
  if (!cast.known) --engine.casts.unknown;
  engine.casts.of_others.erase(Casts::key_of(cast.root, cast.id));
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
void refuse(Engine& engine, Cast& cast, Served& one) {
  CANELE_MARK(forward_refused);
  one.asked = false;
  one.done = true;
  Peer& peer = engine.peer(one.rank);
  tell(engine, peer, wire::Type::elsewhere, cast);
}

/// Gives memory back to its owners, when no forward reads it any more.
void settle(Engine& engine, Cast& cast) {
  if (cast.waiting && (cast.stock != nullptr || !is_serving(cast))) {
    cast.waiting = false;
    cast.over = true;
    engine.finish(*std::exchange(cast.receive, nullptr), cast.outcome);
  }
  if (!cast.over || is_serving(cast) || cast.fetching != nullptr || cast.receive != nullptr) return;
  stock::drop(engine, cast);
  for (Served& one : cast.serves) {
    if (one.asked) refuse(engine, cast, one);
  }
  const bool all_done = std::all_of(cast.serves.begin(), cast.serves.end(), [](const Served& one) { return one.done; });
  if (cast.known && all_done) erase(engine, cast);
}

/// Cleans up after a forward. Runs some time after the forward was finalized.
void forward_over(Engine& engine, CallOp& op) {
  auto& forward = static_cast<Forward&>(*static_cast<Internal::Over&>(op).owner);
  Cast& cast = *forward.cast;
  Served& one = *served_by_us(cast, forward.rank);
  one.done = true;
  one.asked = false;
  one.forward.reset();
  settle(engine, cast);
}

void end_forward(Engine& engine, Request& forward, int error) {
  engine.sends.remove(forward.handle);
  engine.finish(forward, error);
}

/// Sends what is available and has not been sent.
void feed(Engine& engine, const Cast& cast, Served& one) {
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
  send_path::enqueue(engine, engine.peer(one.rank), forward.item);
}

void begin_forward(Engine& engine, Cast& cast, Served& one, const canele_data_t& data) {
  CANELE_MARK(forward_begun);
  one.forward = std::make_unique<Forward>();
  Forward& forward = *one.forward;
  forward.cast = &cast;
  prepare_internal(forward, engine, engine.casts.own, one.rank, forward_over);
  ++engine.casts.own.pending;
  ++engine.pending_sends;
  forward.part = Request::Part::forward;
  forward.stage = Request::Stage::moving;
  forward.rendezvous = forward.confirm = true;
  forward.tick = engine.watch.tick();
  forward.data = data;
  forward.status_length = cast.length;
  forward.handle = engine.sends.add(forward);
  engine.counters.add(Counter::multicasts_forwarded);
  engine.counters.add(Counter::bytes_forwarded, one.want.length);
}

/// Serves a rank that has asked: it gets what is available, or is told that there will be nothing.
void serve(Engine& engine, Cast& cast, Served& one) {
  if (one.forward == nullptr) {
    if (cast.over) return refuse(engine, cast, one);
    const canele_data_t* data = stock::source(cast);
    if (data == nullptr && cast.receive == nullptr && stock::begin(engine, cast)) data = stock::source(cast);
    if (data == nullptr && cast.receive != nullptr) data = &cast.receive->data;
    if (data == nullptr) return refuse(engine, cast, one);
    begin_forward(engine, cast, one, *data);
  }
  Forward& forward = *one.forward;
  forward.bulk_key = one.want.key;
  forward.moved = forward.expected = one.want.offset;
  feed(engine, cast, one);
  paused(engine, forward);
}

/// Gives up a multicast of which no more data will come. Each rank that we serve is told as soon as what it was
/// promised has left.
void give_up(Engine& engine, Cast& cast) {
  cast.over = cast.failed = true;
  for (Served& one : cast.serves) {
    if (one.forward != nullptr) paused(engine, *one.forward);
  }
}

void feed_all(Engine& engine, Cast& cast) {
  for (Served& one : cast.serves) {
    if (one.forward != nullptr) feed(engine, cast, one);
  }
}

/// Forgets the multicasts of a root that have ended everywhere.
void forget_below(Engine& engine, int root, std::uint32_t lowest) {
  std::uint32_t& known = engine.casts.lowest[root];
  if (lowest <= known) return;
  known = lowest;
  std::vector<Cast*> old;
  for (auto& [key, cast] : engine.casts.of_others) {
    const bool idle = !is_serving(*cast) && cast->fetching == nullptr && cast->receive == nullptr;
    if (cast->root == root && cast->id < lowest && idle && cast->stock == nullptr) old.push_back(cast.get());
  }
  for (const Cast* cast : old) erase(engine, *cast);
}

/// Forgets a multicast that no envelope has announced, unless a rank waits for it here.
void forget_unknown(Engine& engine, const Cast& cast) {
  const bool waits = std::any_of(cast.serves.begin(), cast.serves.end(), [](const Served& one) { return one.asked; });
  if (!cast.known && !cast.elsewhere && !waits) erase(engine, cast);
}

bool fits(const Cast& cast, const wire::Want& want) {
  return want.length <= cast.length && want.offset <= cast.length - want.length;
}

/// Sends a rank away whose want is for an unknown multicast, or does not fit. The root may have told one of the two
/// ranks wrong.
const char* send_away(Engine& engine, Peer& peer, std::uint32_t id, std::int32_t root) {
  CANELE_RARE_MARK(wish_sent_away);
  send_path::control(engine, peer, wire::Type::elsewhere, id, 0, 0, &root, sizeof root);
  return nullptr;
}

/// Returns whether the multicast has ended, or can never come.
bool is_past(const Engine& engine, std::int32_t root, std::uint32_t id) {
  const auto lowest = engine.casts.lowest.find(root);
  const Peer* peer = engine.peers[root];
  return (lowest != engine.casts.lowest.end() && id < lowest->second) || (peer != nullptr && peer->gone());
}

const char* take_root(const Engine& engine, std::span<const std::byte> payload, std::int32_t& root) {
  if (!wire::take(payload, root) || root < 0 || root >= engine.size || root == engine.rank) {
    return "a multicast message names no root";
  }
  return nullptr;
}

}  // namespace

const char* take_route(Engine& engine, const Peer& root, std::span<const std::byte>& payload, Announced& out) {
  wire::Route& route = out.route;
  if (!wire::take(payload, route) || route.serves > most_served ||
      payload.size() < route.serves * sizeof(std::uint32_t)) {
    return "the route of a multicast has a wrong length";
  }
  if (route.server < -1 || route.server >= engine.size || route.server == engine.rank || route.server == root.rank ||
      route.id == 0 || route.id < route.lowest) {
    return "the route of a multicast is malformed";
  }
  if (const Cast* cast = find(engine, root.rank, route.id); cast != nullptr && cast->known) {
    return "a multicast arrived twice";
  }
  out.serves = payload.first(route.serves * sizeof(std::uint32_t));
  payload = payload.subspan(out.serves.size());
  std::uint32_t ranks[most_served];
  std::memcpy(ranks, out.serves.data(), out.serves.size());
  std::sort(ranks, ranks + route.serves);
  const bool twice = std::adjacent_find(ranks, ranks + route.serves) != ranks + route.serves;
  const bool strange = std::any_of(ranks, ranks + route.serves, [&](std::uint32_t rank) {
    return rank >= static_cast<std::uint32_t>(engine.size) || rank == static_cast<std::uint32_t>(engine.rank) ||
           rank == static_cast<std::uint32_t>(root.rank) || rank == static_cast<std::uint32_t>(route.server);
  });
  return twice || strange ? "the route of a multicast names an invalid rank" : nullptr;
}

Cast* find(Engine& engine, int root, std::uint32_t id) {
  const auto found = engine.casts.of_others.find(Casts::key_of(root, id));
  return found == engine.casts.of_others.end() ? nullptr : found->second.get();
}

Cast& announced(Engine& engine, Peer& root, const Announced& announced, const wire::Rts& rts, Session& session) {
  const wire::Route& route = announced.route;
  forget_below(engine, root.rank, route.lowest);
  Cast* cast = find(engine, root.rank, route.id);
  if (cast == nullptr) cast = &make(engine, root.rank, route.id);
  assert(!cast->known && "take_route() has looked");
  CANELE_MARK(multicast_announced);
  cast->known = true;
  --engine.casts.unknown;
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
    if (one.asked && (!one.listed || !fits(*cast, one.want))) refuse(engine, *cast, one);
  }
  return *cast;
}

void serve_waiting(Engine& engine, Cast& cast) {
  for (Served& one : cast.serves) {
    if (one.asked && one.forward == nullptr) serve(engine, cast, one);
  }
}

void refused(Engine& engine, Cast& cast, int reason) {
  if (cast.stock == nullptr) {
    rendezvous::fin(engine, engine.peer(cast.root), cast.send, reason);
    cast.over = cast.failed = true;
  } else if (cast.stock->complete || cast.failed) {
    cast.over = true;
  } else {
    cast.dropped = true;
  }
  settle(engine, cast);
}

bool bound(Engine& engine, Request& request, Cast& cast) {
  request.receive.cast = &cast;
  if (stock::takes_over(engine, request, cast)) return true;
  if (request.data.length < cast.length) {
    CANELE_MARK(receive_too_short_to_serve);
    cast.over = true;
  }
  cast.receive = &request;
  serve_waiting(engine, cast);
  return false;
}

Peer& source_of(Engine& engine, const Cast& cast) {
  if (cast.server >= 0 && !cast.elsewhere) {
    Peer& server = engine.peer(cast.server);
    if (!server.gone()) return server;
  }
  return engine.peer(cast.root);
}

void want(Engine& engine, Request& request, Peer& server, std::uint64_t offset) {
  CANELE_MARK(multicast_wanted);
  const Cast& cast = *request.receive.cast;
  const wire::Want want{request.handle, offset, request.expected - offset, cast.root, 0};
  send_path::control(engine, server, wire::Type::want, cast.id, 0, 0, &want, sizeof want);
}

void advanced(Engine& engine, Request& request) {
  Cast& cast = *request.receive.cast;
  if (cast.over) return;
  cast.available = request.moved;
  feed_all(engine, cast);
}

void fetched(Engine& engine, const Request& request, Peer& from) {
  const Cast& cast = *request.receive.cast;
  rendezvous::fin(engine, engine.peer(cast.root), cast.send, CANELE_OK);
  if (from.rank != cast.root) tell(engine, from, wire::Type::served, cast);
}

void received(Engine& engine, Request& request, int outcome) {
  Cast& cast = *request.receive.cast;
  cast.fetching = nullptr;
  const bool there = outcome == CANELE_OK || outcome == CANELE_ETRUNC;
  if (there && !cast.over) {
    cast.available = cast.length;
    feed_all(engine, cast);
  } else if (!there) {
    give_up(engine, cast);
  }
  if (request.part == Request::Part::stock) {
    stock::filled(engine, cast, outcome);
    if (cast.dropped) cast.over = true;
  } else {
    cast.receive = &request;
    cast.outcome = outcome;
    cast.waiting = true;
    if (is_serving(cast) && cast.stock == nullptr) {
      CANELE_MARK(received_while_serving);
      request.status_error = outcome;
      engine.publish(request, event::received);
    }
  }
  settle(engine, cast);
}

void ask_again(Engine& engine, Request& request) {
  Cast& cast = *request.receive.cast;
  Peer& from = source_of(engine, cast);
  if (from.gone()) {
    CANELE_RARE_MARK(multicast_without_source);
    receive_path::failed(engine, request, from.error);
    return;
  }
  CANELE_MARK(multicast_asked_again);
  rendezvous::grant(engine, request, from, cast.send, request.moved);
}

const char* on_want(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  wire::Want want;
  if (!wire::take(payload, want)) return "a multicast CTS is too short";
  if (want.root < 0 || want.root >= engine.size || want.root == engine.rank || want.root == peer.rank ||
      want.length == 0 || want.key == 0 || head.tag > ~std::uint32_t{0}) {
    return "a multicast CTS is malformed";
  }
  const auto id = static_cast<std::uint32_t>(head.tag);
  Cast* cast = find(engine, want.root, id);
  if (cast == nullptr) {
    if (is_past(engine, want.root, id) || engine.casts.unknown >= Casts::most_unknown) {
      return send_away(engine, peer, id, want.root);
    }
    CANELE_MARK(wish_before_envelope);
    cast = &make(engine, want.root, id);
  }
  Served* one = served_by_us(*cast, peer.rank);
  if (cast->known && (one == nullptr || !fits(*cast, want))) return send_away(engine, peer, id, want.root);
  if (one == nullptr) {
    one = &cast->serves.emplace_back();
    one->rank = peer.rank;
  }
  if (one->forward != nullptr && one->forward->bulk_key != 0) return "it wants what it has been promised";
  one->asked = true;
  one->want = want;
  if (cast->known) serve(engine, *cast, *one);
  return nullptr;
}

const char* on_served(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t root;
  if (const char* wrong = take_root(engine, payload, root); wrong != nullptr) return wrong;
  Cast* cast = find(engine, root, static_cast<std::uint32_t>(head.tag));
  Served* one = cast != nullptr ? served_by_us(*cast, peer.rank) : nullptr;
  if (one == nullptr) return nullptr;
  if (one->forward == nullptr) {  // it was refused meanwhile, or it asked before the envelope came
    one->asked = false;
    one->done = true;
    forget_unknown(engine, *cast);
    return nullptr;
  }
  Forward& forward = *one->forward;
  if (forward.finalized()) return nullptr;
  if (forward.moved != forward.expected) {  // the rail has not given the last of the memory back
    CANELE_MARK(served_before_the_rail_let_go);
    forward.confirmed = true;
  } else {
    CANELE_MARK(forward_served);
    end_forward(engine, forward, CANELE_OK);
  }
  return nullptr;
}

const char* on_elsewhere(Engine& engine, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t root;
  if (const char* wrong = take_root(engine, payload, root); wrong != nullptr) return wrong;
  const auto id = static_cast<std::uint32_t>(head.tag);
  Cast* cast = find(engine, root, id);
  const bool from_root = peer.rank == root;
  if (cast == nullptr) {
    if (!from_root || engine.casts.unknown >= Casts::most_unknown || id < engine.casts.lowest[root]) return nullptr;
    CANELE_RARE_MARK(elsewhere_before_envelope);
    cast = &make(engine, root, id);
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
  if (from_root) tell(engine, *request->receive.peer, wire::Type::served, *cast);
  rendezvous::grant_again(engine, *request);
  return nullptr;
}

void paused(Engine& engine, Request& request) {
  auto& forward = static_cast<Forward&>(request);
  if (forward.finalized() || forward.moved != forward.expected || forward.item.queued) return;
  Cast& cast = *forward.cast;
  if (forward.confirmed) {
    end_forward(engine, forward, CANELE_OK);
  } else if (cast.failed && forward.bulk_key != 0 && forward.expected < cast.length) {
    CANELE_MARK(forward_given_up);
    tell(engine, engine.peer(forward.rank), wire::Type::elsewhere, cast);
    end_forward(engine, forward, CANELE_EPEER);
  }
}

/// Handles that the root is gone. Where its data has begun to come, the transfer ends in its own way. Otherwise no rank
/// needs to have any of the data.
void root_gone(Engine& engine, Cast& cast, const Peer& root) {
  CANELE_MARK(root_is_gone);
  Request* const request = cast.fetching;
  const bool served = request != nullptr && request->receive.peer->rank != cast.root;
  if (served && !cast.landing) {
    CANELE_MARK(fetch_ended_with_its_root);
    tell(engine, *request->receive.peer, wire::Type::served, cast);
    engine.transfers.remove(request->handle);
    received(engine, *request, root.error);
  } else if (request == nullptr && cast.receive == nullptr && cast.stock == nullptr) {
    if (!cast.known) --engine.casts.unknown;
    cast.over = cast.known = true;
    settle(engine, cast);
  }
}

void gone(Engine& engine, const Peer& peer) {
  std::vector<std::uint64_t> concerned;
  for (const auto& [key, cast] : engine.casts.of_others) {
    if (cast->root == peer.rank || served_by_us(*cast, peer.rank) != nullptr) concerned.push_back(key);
  }
  for (const std::uint64_t key : concerned) {
    Cast& cast = *engine.casts.of_others.at(key);
    if (Served* one = served_by_us(cast, peer.rank); one != nullptr && one->forward == nullptr) {
      one->asked = false;
      one->done = true;
    }
    if (cast.root == peer.rank) root_gone(engine, cast, peer);
  }
}

}  // namespace canele::comm::multicast
