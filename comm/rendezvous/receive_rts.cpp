// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send that has come. Steps 3 to 5 of receive.cpp, for a message whose data does not come with it.
#include "comm/rendezvous/receive_rts.hpp"

#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {
namespace {

using receive_path::Payload;

/// The parts of a request to send, or of a blocked envelope.
struct Announced {
  wire::Rts rts;
  Payload header, rkey;
  Arrival* arrival = nullptr;  ///< of a multicast
};

const char* take_announced(Payload payload, Announced& out) {
  wire::Rts& rts = out.rts;
  if (!wire::take(payload, rts) || payload.size() != std::size_t{rts.header} + rts.rkey ||
      rts.header > CANELE_HEADER_MAX || rts.rkey > drivers::MemoryKey::max_size || rts.header > rts.length) {
    return "a request to send has wrong lengths";
  }
  out.header = payload.first(rts.header);
  out.rkey = rts.rkey_driver != 0 ? payload.subspan(rts.header) : Payload{};
  return nullptr;
}

/// Starts to move the data of a request to send that has met its receive.
const char* on_match(Context& context, Peer& peer, const wire::Head& head, const Announced& announced,
                     Request& request) {
  const wire::Rts& rts = announced.rts;
  if (request.handle != 0 && head.type == wire::Type::rts) {
    CANELE_COVER(rtr_met_announcement);
    if (rtr::withdraw_or_share(context, peer, request, head, rts, announced.rkey)) return nullptr;
  } else if (request.handle != 0) {
    if (const char* wrong = receive_path::withdraw_rtr(context, request); wrong != nullptr) return wrong;
  }
  context.counters.add(Counter::posted_matches);
  receive_path::set_envelope(request, head.tag, peer.rank, rts.length);
  request.needs_fin = rts.needs_fin != 0;
  context.trace(Event::receive_matched, peer.rank, request.session, head.tag, rts.length);
  CANELE_COVER(rts_met_posted);
  if (announced.arrival != nullptr) request.receive.sink = &announced.arrival->announced(rts, *request.session);
  start_transfer(context, request, peer, rts.handle, announced.rkey, rts.rkey_driver);
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
  return receive_path::no_room(context, peer, {head.tag, announced.rts.length, charged, node});
}

/// Rejects a multicast that cannot be filed. It does not come again, because it is known by now.
[[gnu::cold]] const char* reject_multicast(Context& context, Peer& peer, Arrival& arrival, std::uint64_t charged) {
  arrival.refused(CANELE_ENOMEM);
  if (charged == 0) return nullptr;
  credit_receiver::stored(peer, charged);
  credit_receiver::released(context, peer, charged);
  return nullptr;
}

/// Keeps a request to send that no receive waits for, or only an unbound receive. `charged`: what its envelope cost; 0:
/// nothing.
const char* store_unexpected_rts(Context& context, Peer& peer, Session& session, const wire::Head& head,
                                 const Announced& announced, std::uint64_t charged, PostedNode* node) {
  const wire::Rts& rts = announced.rts;
  const auto traits = static_cast<std::uint8_t>(Message::is_rendezvous | (charged != 0 ? Message::is_charged : 0) |
                                                (rts.needs_fin != 0 ? Message::needs_fin_trait : 0));
  const Message::Origin origin{rts.length, rts.handle, static_cast<std::uint16_t>(announced.rkey.size()),
                               rts.rkey_driver, announced.arrival != nullptr ? announced.arrival->id() : 0};
  Message* message =
      receive_path::make_message(context, peer, {head.tag, traits, origin, announced.header, announced.rkey});
  if (message == nullptr) return no_room_for_rts(context, peer, session, head, announced, charged, node);
  CANELE_COVER(rts_kept);
  if (announced.arrival != nullptr) announced.arrival->announced(rts, session);
  const bool kept = receive_path::store_unexpected(context, session, node, *message);
  if (announced.arrival == nullptr)
    return kept ? nullptr : receive_path::no_room(context, peer, {head.tag, rts.length, charged, node});
  if (!kept) return reject_multicast(context, peer, *announced.arrival, charged);
  announced.arrival->kept();
  return nullptr;
}

}  // namespace

const char* on_rts(Context& context, Peer& peer, const wire::Head& head, Payload payload, Arrival* arrival) {
  Announced announced;
  announced.arrival = arrival;
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  const wire::Rts& rts = announced.rts;
  if (arrival != nullptr && (rts.needs_fin == 0 || rts.receive != 0 || rts.length == 0)) {
    return "the envelope of a multicast is malformed";
  }
  Session* session = nullptr;
  const std::uint64_t cost = wire::credit_cost_of_rts(rts.header);
  if (const char* wrong = receive_path::check_envelope(context, peer, head, cost, session); wrong != nullptr)
    return wrong;
  context.trace(Event::rts_received, peer.rank, session, head.tag, rts.length);
  if (rts.receive != 0) return rtr::on_claimed_rts(context, peer, *session, head, rts, announced.rkey);
  PostedNode* node = context.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).unbound) {
    return store_unexpected_rts(context, peer, *session, head, announced, cost, node);
  }
  return on_match(context, peer, head, announced, request_of(*node));
}

const char* on_blocked_envelope(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  wire::BlockedEnvelope blocked;
  Announced announced;
  if (!wire::take(payload, blocked)) return "a blocked envelope is too short";
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  Session* session = nullptr;
  if (const char* wrong = receive_path::find_session(peer, head, session); wrong != nullptr) return wrong;
  if (announced.rts.receive != 0) return "a blocked envelope names a receive";
  if (const char* wrong = credit_receiver::check(peer, blocked, head.seq); wrong != nullptr) return wrong;
  const char* wrong = nullptr;
  PostedNode* node = context.matcher.peek(session->match, head.tag, peer.rank);
  bool taken = node != nullptr && node->post_order < blocked.solicit_id;
  if (taken) {
    CANELE_COVER(blocked_envelope_met_posted);
    context.matcher.cancel(session->match, *node);
    Request& request = request_of(*node);
    wrong = request.unbound ? store_unexpected_rts(context, peer, *session, head, announced, 0, node)
                            : on_match(context, peer, head, announced, request);
  } else if (node == nullptr && blocked.probe != 0 && credit_receiver::matches_pending_probe(peer)) {
    wrong = store_unexpected_rts(context, peer, *session, head, announced, 0, nullptr);
    taken = wrong == nullptr;
    if (wrong == try_later) wrong = nullptr;  // the message stays where it is, with its sender
  }
  if (wrong == nullptr && !peer.disconnected()) credit_receiver::note_blocked_envelope(context, peer, blocked, taken);
  return wrong;
}

}  // namespace canele::comm::rendezvous
