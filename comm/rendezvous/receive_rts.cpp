// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send that has come. Steps 3 to 5 of receive.cpp, for a message whose data does not come with it.
#include "comm/rendezvous/receive_rts.hpp"

#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::rendezvous {
namespace {

using receive_path::Payload;

/// The parts of a request to send, or of an offer.
struct Announced {
  wire::Rts rts;
  Payload header, exposure;
  Arrival* arrival = nullptr;  ///< of a multicast
};

const char* take_announced(Payload payload, Announced& out) {
  wire::Rts& rts = out.rts;
  if (!wire::take(payload, rts) || payload.size() != std::size_t{rts.header} + rts.exposure ||
      rts.header > CANELE_HEADER_MAX || rts.exposure > drivers::Exposure::max_size || rts.header > rts.length) {
    return "a request to send has wrong lengths";
  }
  out.header = payload.first(rts.header);
  out.exposure = rts.exposed != 0 ? payload.subspan(rts.header) : Payload{};
  return nullptr;
}

/// Starts to move the data of a request to send that has met its receive.
const char* meet(Context& context, Peer& peer, const wire::Head& head, const Announced& announced, Request& request) {
  const wire::Rts& rts = announced.rts;
  if (request.handle != 0 && head.type == wire::Type::rts) {
    CANELE_MARK(offer_met_announcement);
    if (advert::withdraw_or_bind(context, peer, request, head, rts, announced.exposure)) return nullptr;
  } else if (request.handle != 0) {
    if (const char* wrong = receive_path::no_longer_offered(context, request); wrong != nullptr) return wrong;
  }
  context.counters.add(Counter::posted_matches);
  receive_path::set_envelope(request, head.tag, peer.rank, rts.length);
  request.confirm = rts.confirm != 0;
  context.trace(Event::receive_matched, peer.rank, request.session, head.tag, rts.length);
  CANELE_MARK(rts_met_posted);
  if (announced.arrival != nullptr) request.receive.sink = &announced.arrival->announced(rts, *request.session);
  start(context, request, peer, rts.handle, announced.exposure, rts.exposed);
  return nullptr;
}

/// Answers for an announced message for which there is no memory, see receive_path::no_room(). An unbound receive ends,
/// and its sender is told.
[[gnu::cold]] const char* no_room_for_rts(Context& context, Peer& peer, Session& session, const wire::Head& head,
                                          const Announced& announced, std::uint64_t charged, PostedNode* node) {
  if (node != nullptr && announced.arrival != nullptr) {
    announced.arrival->announced(announced.rts, session);
    announced.arrival->refused(CANELE_ENOMEM);
  } else if (node != nullptr) {
    fin(context, peer, announced.rts.handle, CANELE_ENOMEM);
  }
  return receive_path::no_room(context, peer, head, announced.rts.length, charged, node);
}

/// Refuses a multicast that cannot be filed. It does not come again, because it is known by now.
[[gnu::cold]] const char* refuse_multicast(Context& context, Peer& peer, Arrival& arrival, std::uint64_t charged) {
  arrival.refused(CANELE_ENOMEM);
  if (charged == 0) return nullptr;
  flow_in::stored(peer, charged);
  flow_in::released(context, peer, charged);
  return nullptr;
}

/// Keeps a request to send that no receive waits for, or only an unbound receive. `charged`: what its envelope cost; 0:
/// nothing.
const char* keep_rts(Context& context, Peer& peer, Session& session, const wire::Head& head, const Announced& announced,
                     std::uint64_t charged, PostedNode* node) {
  const wire::Rts& rts = announced.rts;
  const auto traits = static_cast<std::uint8_t>(Message::is_rendezvous | (charged != 0 ? Message::is_charged : 0) |
                                                (rts.confirm != 0 ? Message::must_confirm : 0));
  const Message::Origin origin{rts.length, rts.handle, static_cast<std::uint16_t>(announced.exposure.size()),
                               rts.exposed, announced.arrival != nullptr ? announced.arrival->id() : 0};
  Message* message =
      receive_path::make_message(context, peer, head, traits, origin, announced.header, announced.exposure);
  if (message == nullptr) return no_room_for_rts(context, peer, session, head, announced, charged, node);
  CANELE_MARK(rts_kept);
  if (announced.arrival != nullptr) announced.arrival->announced(rts, session);
  const bool kept = receive_path::keep(context, session, node, *message);
  if (announced.arrival == nullptr)
    return kept ? nullptr : receive_path::no_room(context, peer, head, rts.length, charged, node);
  if (!kept) return refuse_multicast(context, peer, *announced.arrival, charged);
  announced.arrival->kept();
  return nullptr;
}

}  // namespace

const char* on_rts(Context& context, Peer& peer, const wire::Head& head, Payload payload, Arrival* arrival) {
  Announced announced;
  announced.arrival = arrival;
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  const wire::Rts& rts = announced.rts;
  if (arrival != nullptr && (rts.confirm == 0 || rts.receive != 0 || rts.length == 0)) {
    return "the envelope of a multicast is malformed";
  }
  Session* session = nullptr;
  const std::uint64_t price = wire::charge_of_rts(rts.header);
  if (const char* wrong = receive_path::check_envelope(context, peer, head, price, session); wrong != nullptr)
    return wrong;
  context.trace(Event::rts_received, peer.rank, session, head.tag, rts.length);
  if (rts.receive != 0) return advert::on_bound(context, peer, *session, head, rts, announced.exposure);
  PostedNode* node = context.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).late) {
    return keep_rts(context, peer, *session, head, announced, price, node);
  }
  return meet(context, peer, head, announced, request_of(*node));
}

const char* on_offer(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  wire::Offer offer;
  Announced announced;
  if (!wire::take(payload, offer)) return "an offer is too short";
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  Session* session = nullptr;
  if (const char* wrong = receive_path::find_session(peer, head, session); wrong != nullptr) return wrong;
  if (announced.rts.receive != 0) return "an offer names a receive";
  if (const char* wrong = flow_in::check(peer, offer, head.seq); wrong != nullptr) return wrong;
  const char* wrong = nullptr;
  PostedNode* node = context.matcher.peek(session->match, head.tag, peer.rank);
  bool taken = node != nullptr && node->stamp < offer.stamp;
  if (taken) {
    CANELE_MARK(offer_met_posted);
    context.matcher.cancel(session->match, *node);
    Request& request = request_of(*node);
    wrong = request.late ? keep_rts(context, peer, *session, head, announced, 0, node)
                         : meet(context, peer, head, announced, request);
  } else if (node == nullptr && offer.probe != 0 && flow_in::may_keep(peer)) {
    wrong = keep_rts(context, peer, *session, head, announced, 0, nullptr);
    taken = wrong == nullptr;
    if (wrong == try_later) wrong = nullptr;  // the message stays where it is, with its sender
  }
  if (wrong == nullptr && !peer.gone()) flow_in::offered(context, peer, offer, taken);
  return wrong;
}

}  // namespace canele::comm::rendezvous
