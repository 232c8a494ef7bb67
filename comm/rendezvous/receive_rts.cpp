// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send that has come. Steps 3 to 5 of receive.cpp, for a message whose data does not come with it.
#include "comm/rendezvous/receive_rts.hpp"

#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/rendezvous/parsed_rts.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {
namespace {

using receive_path::Payload;

/// A request to send that no receive waits for, or only an unbound receive.
struct UnexpectedRts {
  const ParsedRts& parsed;
  Session& session;
  std::uint64_t charged;  ///< what its envelope cost; 0: nothing
  PostedNode* node;       ///< of the unbound receive; nullptr: none

  receive_path::Unexpected envelope() const { return {parsed.head.tag, parsed.rts.length, charged, node}; }
};

Verdict parse_rts(const wire::Head& head, Payload payload, ParsedRts& out);
Verdict on_match(Context& context, Peer& peer, const ParsedRts& parsed, Request& request) CANELE_UNDER_LOCK;
Verdict store_unexpected_rts(Context& context, Peer& peer, const UnexpectedRts& unexpected) CANELE_UNDER_LOCK;
[[gnu::cold]] Verdict no_room_for_rts(Context& context, Peer& peer, const UnexpectedRts& unexpected) CANELE_UNDER_LOCK;
[[gnu::cold]] Verdict reject_multicast(Context& context, Peer& peer, Arrival& arrival,
                                       std::uint64_t charged) CANELE_UNDER_LOCK;

}  // namespace

Verdict on_rts(Context& context, Peer& peer, const wire::Head& head, Payload payload, Arrival* arrival) {
  ParsedRts parsed;
  parsed.arrival = arrival;
  if (const Verdict v = parse_rts(head, payload, parsed); !v.is_ok()) return v;
  const wire::Rts& rts = parsed.rts;
  if (arrival != nullptr && (rts.needs_fin == 0 || rts.receive != Handle::none || rts.length == 0)) {
    return Verdict::violation("the envelope of a multicast is malformed");
  }
  Session* session = nullptr;
  const std::uint64_t cost = wire::credit_cost_of_rts(rts.header);
  if (const Verdict v = receive_path::check_envelope(context, peer, head, cost, session); !v.is_ok()) return v;
  context.trace(Event::rts_received, peer.rank, session, head.tag, rts.length);
  if (rts.receive != Handle::none) return rtr::on_claimed_rts(context, peer, *session, parsed);
  PostedNode* node = context.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).unbound) {
    return store_unexpected_rts(context, peer, {parsed, *session, cost, node});
  }
  return on_match(context, peer, parsed, request_of(*node));
}

namespace {

/// Reads a request to send. Returns the verdict on it.
Verdict parse_rts(const wire::Head& head, Payload payload, ParsedRts& out) {
  out.head = head;
  wire::Rts& rts = out.rts;
  if (!wire::take(payload, rts) || payload.size() != std::size_t{rts.header} + rts.rkey ||
      rts.header > CANELE_HEADER_MAX || rts.rkey > drivers::MemoryKey::max_size || rts.header > rts.length) {
    return Verdict::violation("a request to send has wrong lengths");
  }
  out.header = payload.first(rts.header);
  out.rkey = rts.rkey_driver != 0 ? payload.subspan(rts.header) : Payload{};
  return Verdict::ok();
}

/// Starts to move the data of a request to send that has met its receive.
Verdict on_match(Context& context, Peer& peer, const ParsedRts& parsed, Request& request) {
  const wire::Head& head = parsed.head;
  const wire::Rts& rts = parsed.rts;
  if (request.handle != Handle::none && head.type == wire::Type::rts) {
    CANELE_COVER(rtr_met_announcement);
    if (rtr::withdraw_or_share(context, peer, request, parsed)) return Verdict::ok();
  } else if (request.handle != Handle::none) {
    if (const Verdict v = receive_path::withdraw_rtr(context, request); !v.is_ok()) return v;
  }
  context.counters.add(Counter::posted_matches);
  receive_path::set_envelope(request, head.tag, peer.rank, rts.length);
  request.needs_fin = rts.needs_fin != 0;
  context.trace(Event::receive_matched, peer.rank, request.session, head.tag, rts.length);
  CANELE_COVER(rts_met_posted);
  if (parsed.arrival != nullptr) request.receive.sink = &parsed.arrival->announced(rts, *request.session);
  const bool ended = peer.disconnected() || context.stage == Stage::leaving;
  if (parsed.has_all_data() && request.receive.sink == nullptr && !ended) {
    CANELE_COVER(rts_brought_all_data);
    fin(context, peer, rts.handle, CANELE_OK);
    receive_path::copy_eager(context, request, peer, parsed.header);
    return Verdict::ok();
  }
  start_transfer(context, request, peer, parsed.source());
  return Verdict::ok();
}

/// Keeps a request to send that no receive waits for, or only an unbound receive.
Verdict store_unexpected_rts(Context& context, Peer& peer, const UnexpectedRts& unexpected) {
  const auto& [parsed, session, charged, node] = unexpected;
  const wire::Rts& rts = parsed.rts;
  const auto traits = static_cast<std::uint8_t>(Message::is_rendezvous | (charged != 0 ? Message::is_charged : 0) |
                                                (rts.needs_fin != 0 ? Message::needs_fin_trait : 0));
  const auto rkey = static_cast<std::uint16_t>(parsed.rkey.size());
  const Message::Origin origin{
      rts.length,      rts.handle,          rkey,
      rts.rkey_driver, rts.may_stream != 0, parsed.arrival != nullptr ? parsed.arrival->id() : 0};
  Message* message =
      receive_path::make_message(context, peer, {parsed.head.tag, traits, origin, parsed.header, parsed.rkey});
  if (message == nullptr) return no_room_for_rts(context, peer, unexpected);
  CANELE_COVER(rts_kept);
  if (parsed.arrival != nullptr) parsed.arrival->announced(rts, session);
  const bool kept = receive_path::store_unexpected(context, session, node, *message);
  if (parsed.arrival == nullptr)
    return kept ? Verdict::ok() : receive_path::no_room(context, peer, unexpected.envelope());
  if (!kept) return reject_multicast(context, peer, *parsed.arrival, charged);
  parsed.arrival->kept();
  return Verdict::ok();
}

/// Answers for an announced message for which there is no memory, see receive_path::no_room(). An unbound receive ends,
/// and its sender is told.
[[gnu::cold]] Verdict no_room_for_rts(Context& context, Peer& peer, const UnexpectedRts& unexpected) {
  const ParsedRts& parsed = unexpected.parsed;
  if (unexpected.node != nullptr && parsed.arrival != nullptr) {
    parsed.arrival->announced(parsed.rts, unexpected.session);
    parsed.arrival->rejected(CANELE_ENOMEM);
  } else if (unexpected.node != nullptr) {
    fin(context, peer, parsed.rts.handle, CANELE_ENOMEM);
  }
  return receive_path::no_room(context, peer, unexpected.envelope());
}

/// Rejects a multicast that cannot be filed. It does not come again, because it is known by now.
[[gnu::cold]] Verdict reject_multicast(Context& context, Peer& peer, Arrival& arrival, std::uint64_t charged) {
  arrival.rejected(CANELE_ENOMEM);
  if (charged == 0) return Verdict::ok();
  credit_receiver::stored(peer, charged);
  credit_receiver::released(context, peer, charged);
  return Verdict::ok();
}

}  // namespace

Verdict on_blocked_envelope(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  wire::BlockedEnvelope blocked;
  ParsedRts parsed;
  if (!wire::take(payload, blocked)) return Verdict::violation("a blocked envelope is too short");
  if (const Verdict v = parse_rts(head, payload, parsed); !v.is_ok()) return v;
  Session* session = nullptr;
  if (const Verdict v = receive_path::find_session(peer, head, session); !v.is_ok()) return v;
  if (parsed.rts.receive != Handle::none) return Verdict::violation("a blocked envelope names a receive");
  if (const Verdict v = credit_receiver::check(peer, blocked, head.seq); !v.is_ok()) return v;
  Verdict verdict = Verdict::ok();
  PostedNode* node = context.matcher.peek(session->match, head.tag, peer.rank);
  bool taken = node != nullptr && node->post_order < blocked.solicit_id;
  if (taken) {
    CANELE_COVER(blocked_envelope_met_posted);
    context.matcher.cancel(session->match, *node);
    Request& request = request_of(*node);
    verdict = request.unbound ? store_unexpected_rts(context, peer, {parsed, *session, 0, node})
                              : on_match(context, peer, parsed, request);
  } else if (node == nullptr && blocked.probe != 0 && credit_receiver::matches_pending_probe(peer)) {
    verdict = store_unexpected_rts(context, peer, {parsed, *session, 0, nullptr});
    taken = verdict.is_ok();
    if (verdict.is_retry()) verdict = Verdict::ok();  // the message stays where it is, with its sender
  } else if (node == nullptr && session->takes_blocked != nullptr &&
             session->takes_blocked(*session, peer.rank, head.tag)) {
    verdict = store_unexpected_rts(context, peer, {parsed, *session, 0, nullptr});
    taken = true;
  }
  if (verdict.is_ok() && !peer.disconnected()) credit_receiver::note_blocked_envelope(context, peer, blocked, taken);
  return verdict;
}

}  // namespace canele::comm::rendezvous
