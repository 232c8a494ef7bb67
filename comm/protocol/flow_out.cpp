// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half. See flow_out.hpp (who, threads).
// Surprise: what was offered once goes by rendezvous for good: the receiver may know its handle.
#include "comm/protocol/flow_out.hpp"

#include <algorithm>
#include <utility>

#include "comm/protocol/send_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::flow_out {
namespace {

std::uint64_t charge_of(const Request& request) {
  return request.rendezvous ? wire::charge_of_rts(request.header) : wire::charge_of_eager(request.data.length);
}

/// Takes the price of the envelope off `credit`; a message that is too dear goes by rendezvous if that is not.
bool pay(std::uint64_t& credit, Request& request) {
  if (charge_of(request) > credit) {
    if (request.rendezvous || wire::charge_of_rts(request.header) > credit) return false;
    CANELE_MARK(credit_too_short_for_eager);
    request.rendezvous = true;
  }
  credit -= charge_of(request);
  return true;
}

void append(Withheld& list, Request& request) {
  request.withheld = true;
  request.withheld_next = nullptr;
  request.withheld_prev = list.last;
  (list.last != nullptr ? list.last->withheld_next : list.first) = &request;
  list.last = &request;
  ++list.count;
}

void unlink(Engine& engine, Withheld& list, Request& request) {
  Request* const prev = request.withheld_prev;
  Request* const next = request.withheld_next;
  (prev != nullptr ? prev->withheld_next : list.first) = next;
  (next != nullptr ? next->withheld_prev : list.last) = prev;
  if (list.cursor == &request) list.cursor = next;
  request.withheld = false;
  --list.count;
  engine.counters.sub(Counter::withheld_now);
}

void tell(Engine& engine, Peer& peer, bool withholds) {
  send_path::control(engine, peer, wire::Type::withheld, withholds ? 1 : 0, 0, 0, nullptr, 0);
}

/// Nothing is withheld any more: new messages use the credit that is left.
void reopen(Engine& engine, Peer& peer) {
  CANELE_MARK(nothing_withheld_any_more);
  Withheld& list = *peer.withheld;
  peer.credit = std::exchange(list.credit, 0);
  list.stamp = 0;
  engine.counters.add(Counter::credit_stalled_ns, engine.platform.now_ns() - list.since_ns);
  tell(engine, peer, false);
}

/// Offers the next ones in the list.
void offer_batch(Engine& engine, Peer& peer) {
  Withheld& list = *peer.withheld;
  list.batch_size = 0;
  ++list.batch_number;
  while (list.cursor != nullptr && list.batch_size < Withheld::most_offered) {
    Request& request = *list.cursor;
    list.cursor = request.withheld_next;
    list.batch[list.batch_size++] = &request;
    request.rendezvous = request.offering = true;
  }
  list.batch_last = list.cursor == nullptr;
  list.batch_stamp = list.stamp;
  list.batch_out = true;
  CANELE_MARK(withheld_offered);
  for (int i = 0; i < list.batch_size; ++i) send_path::join_backlog(engine, peer, *list.batch[i]);
}

/// Lets go of as much as credit allows, then offers, if somebody asked.
void advance(Engine& engine, Peer& peer) {
  Withheld& list = *peer.withheld;
  if (list.batch_out || list.first == nullptr) return;
  while (list.first != nullptr && pay(list.credit, *list.first)) {
    Request& request = *list.first;
    unlink(engine, list, request);
    CANELE_MARK(withheld_left_by_credit);
    send_path::join_backlog(engine, peer, request);
  }
  if (list.first == nullptr) return reopen(engine, peer);
  if (list.stamp != 0 && list.cursor != nullptr) offer_batch(engine, peer);
}

void forget_in_batch(Withheld& list, const Request& request) {
  std::replace(list.batch, list.batch + list.batch_size, const_cast<Request*>(&request),
               static_cast<Request*>(nullptr));
}

}  // namespace

bool admit(Engine& engine, Peer& peer, Request& request) {
  if (pay(peer.credit, request)) return true;
  if (peer.withheld == nullptr) peer.withheld = std::make_unique<Withheld>();
  Withheld& list = *peer.withheld;
  CANELE_MARK(send_withheld);
  engine.counters.add(Counter::credit_stalls);
  engine.counters.add(Counter::withheld_now);
  engine.counters.raise_to(Counter::withheld_most, Counter::withheld_now);
  const bool was_empty = list.first == nullptr;
  append(list, request);
  engine.credit.just_withheld = true;
  if (was_empty) {
    list.credit = std::exchange(peer.credit, 0);
    list.since_ns = engine.platform.now_ns();
    tell(engine, peer, true);
  }
  if (list.stamp != 0 && list.cursor == nullptr) list.cursor = &request;
  advance(engine, peer);
  return false;
}

const char* on_credit(Engine& engine, Peer& peer, std::uint64_t total) {
  if (total < peer.credit_heard) return "it grants less than before";
  const std::uint64_t more = total - std::exchange(peer.credit_heard, total);
  if (peer.withheld == nullptr || peer.withheld->first == nullptr) {
    peer.credit += more;
  } else {
    CANELE_MARK(credit_for_withheld);
    peer.withheld->credit += more;
    advance(engine, peer);
  }
  return nullptr;
}

const char* on_resume(Engine& engine, Peer& peer, std::uint64_t stamp) {
  if (stamp == 0) return "it asks for what is withheld without a stamp";
  if (peer.withheld == nullptr || peer.withheld->first == nullptr) return nullptr;  // it has left meanwhile
  peer.withheld->stamp = stamp;
  peer.withheld->cursor = peer.withheld->first;
  advance(engine, peer);
  return nullptr;
}

const char* on_answer(Engine& engine, Peer& peer, std::uint64_t mask, std::uint32_t batch) {
  Withheld* const list = peer.withheld.get();
  if (list == nullptr || !list->batch_out || list->batch_number != batch) return "it answers what was not offered";
  if (list->batch_size < 64 && mask >> list->batch_size != 0) return "it takes more than was offered";
  for (int i = 0; i < list->batch_size; ++i) {
    Request* const request = list->batch[i];
    if (request == nullptr) continue;  // its cts or fin was faster
    if (request->offering) return "it answers what it has not got";
    if ((mask >> i & 1) == 0) continue;
    CANELE_MARK(offer_was_taken);
    taken(engine, peer, *request);
  }
  list->batch_out = false;
  list->batch_size = 0;
  advance(engine, peer);
  return nullptr;
}

wire::Offer describe(const Peer& peer, const Request& request) {
  const Withheld& list = *peer.withheld;
  wire::Offer offer{};
  offer.stamp = list.batch_stamp;
  offer.index = static_cast<std::uint8_t>(std::find(list.batch, list.batch + list.batch_size, &request) - list.batch);
  offer.count = static_cast<std::uint8_t>(list.batch_size);
  offer.last = list.batch_last;
  return offer;
}

void taken(Engine& engine, Peer& peer, Request& request) {
  Withheld& list = *peer.withheld;
  forget_in_batch(list, request);
  unlink(engine, list, request);
  request.stage = Request::Stage::moving;
  send_path::count_message(engine, peer, request);
  if (list.first == nullptr) reopen(engine, peer);
}

void drop(Engine& engine, Peer& peer) {
  if (peer.withheld == nullptr) return;
  Withheld& list = *peer.withheld;
  list.batch_out = false;
  list.batch_size = 0;
  while (list.first != nullptr) {
    Request& request = *list.first;
    unlink(engine, list, request);
    if (request.offering) continue;  // the backlog, or its packet, ends it
    if (request.handle != 0) engine.sends.remove(request.handle);
    CANELE_MARK(withheld_ended);
    engine.finish(request, peer.error);
  }
}

}  // namespace canele::comm::flow_out
