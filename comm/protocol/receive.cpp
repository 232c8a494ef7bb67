// SPDX-License-Identifier: BSD-3-Clause
//
// Receive, in five steps: (1) the driver presents a packet; (2) it is parsed. (3) Each chunk is checked. (4) Envelopes
// are matched. (5) The data is copied once into the user's memory, or kept. Steps 1 and 2 are in receive_packet. Small
// messages take the fast path of receive_eager.hpp; large ones go on in rendezvous/receive_rts.cpp.
//
// A malformed chunk ends the connection, never the process.
#include "comm/protocol/receive.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/link/queue.hpp"
#include "comm/protocol/matched_unbound.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/message_taker.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::receive_path {

void acknowledge(Context& context, Peer& peer, Handle handle, int outcome) {
  link::send_control(context, peer,
                     {.type = wire::Type::ack, .tag = word_of(handle), .seq = static_cast<std::uint32_t>(-outcome)});
}

[[gnu::cold, gnu::noinline]] Verdict withdraw_rtr(Context& context, Request& request) {
  CANELE_COVER(rtr_met_other_message);
  return context.withdraw_rtr(request) ? Verdict::ok()
                                       : Verdict::violation("it took an RTR, and sent something else for its receive");
}

[[gnu::cold]] void inspect_delivery(Context& context, const Request& request, std::uint64_t delivered_bytes) {
  constexpr std::uint64_t worth_flipping = 1024;
  context.trace(Event::receive_done, request.rank, request.session, request.status_tag, delivered_bytes);
  if (context.flip_countdown == 0 || delivered_bytes < worth_flipping || --context.flip_countdown != 0) return;
  iovec piece;
  std::size_t covered = 0;
  // This byte is the top of a float's fraction, and the foot of a double's exponent. So a check that allows for
  // rounding must see the flip. It makes no NaN, which compares as neither right nor wrong.
  const std::uint64_t victim = (delivered_bytes / 2 & ~std::uint64_t{7}) + 6;
  data::pieces(request.data, victim, 1, &piece, 1, &covered);
  if (covered == 1) *static_cast<std::uint8_t*>(piece.iov_base) ^= 0x40;
  context.log(LogLevel::warning, "fault switch: flipped one bit of a received message");
}

namespace {

/// Files the message in the tables. Returns false if there is no memory for its places there; nothing has changed then.
bool store(Context& context, Session& session, Message& message) CANELE_UNDER_LOCK {
  try {
    context.matcher.store(session.match, message);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Accounts for a message that has just been stored. Afterwards it may be gone: the owner of its session may reject it.
void note_unexpected(Context& context, Session& session, Message& message) CANELE_UNDER_LOCK {
  CANELE_COVER(unexpected_filed);
  context.trace(Event::unexpected_stored, message.source, &session, message.tag, message.length());
  EngineCounters& c = context.counters;
  c.add(Counter::unexpected_messages);
  c.add(Counter::unexpected_now);
  c.add(Counter::unexpected_bytes_now, message.stored);
  c.raise_to(Counter::unexpected_most, Counter::unexpected_now);
  c.raise_to(Counter::unexpected_bytes_most, Counter::unexpected_bytes_now);
  if (session.unmatched != nullptr) [[unlikely]]
    session.unmatched(session, message);
}

/// Undoes the envelope of a message that comes again: its number is not used yet, and its cost is given back. Only for
/// messages that no receive waits for.
void comes_again(Peer& peer, std::uint64_t charged) {
  --peer.next_in;
  credit_receiver::take_back(peer, charged);
}

/// Returns whether a message stays with its driver. A thread polls for messages of its session (Context::defer_filter),
/// and no receive waits for this one.
[[gnu::cold, gnu::noinline]] bool defers(Context& context, Peer& peer, std::uint64_t tag,
                                         std::size_t length) CANELE_UNDER_LOCK {
  if (!context.defer_filter.defers(tag, peer.rank)) return false;
  comes_again(peer, wire::credit_cost_of_eager(length));
  return true;
}

}  // namespace

Message* make_message(Context& context, const Peer& peer, const MessageFields& fields) {
  const Payload stored = fields.stored, rkey = fields.rkey;
  const std::size_t behind = Message::origin_size(fields.traits) + stored.size() + rkey.size();
  Message* message = CANELE_BUGGIFY(no_memory_message) ? nullptr : context.messages.make(behind);
  if (message == nullptr) return nullptr;
  message->tag = fields.tag;
  message->source = peer.rank;
  message->traits = fields.traits;
  message->stored = static_cast<std::uint32_t>(stored.size());
  if (message->has_origin()) new (&message->origin()) Message::Origin(fields.origin);
  if (!stored.empty()) std::memcpy(message->bytes(), stored.data(), stored.size());
  if (!rkey.empty()) std::memcpy(message->bytes() + stored.size(), rkey.data(), rkey.size());
  return message;
}

bool store_unexpected(Context& context, Session& session, PostedNode* node, Message& message) {
  if (node == nullptr && !store(context, session, message)) {
    context.messages.release(message);
    return false;
  }
  if (message.charged()) credit_receiver::stored(context.peer(message.source), message.credit_cost());
  if (node == nullptr) {
    note_unexpected(context, session, message);
  } else {
    CANELE_COVER(unbound_receive_met);
    context.counters.add(Counter::posted_matches);
    deliver_to(context, request_of(*node), message);
  }
  return true;
}

[[gnu::cold]] Verdict no_room(Context& context, Peer& peer, const Unexpected& message) {
  if (message.node == nullptr) {
    if (message.charged == 0) return Verdict::retry();
    CANELE_COVER(no_memory_comes_again);
    comes_again(peer, message.charged);
    return Verdict::retry();
  }
  CANELE_COVER(no_memory_ends_unbound_receive);
  Request& request = request_of(*message.node);
  set_envelope(request, message.tag, peer.rank, message.length);
  context.finish(request, CANELE_ENOMEM);
  return Verdict::ok();
}

namespace {

/// Queues a receive that has just been matched, as the newest one. Returns false if there is no memory for that.
bool wait_again(Context& context, Session& session, PostedNode& node) CANELE_UNDER_LOCK {
  try {
    [[maybe_unused]] const UnexpectedNode* const older = context.matcher.post(session.match, node);
    assert(older == nullptr && "an older message would have met the receive before");
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Gives a message to the taker of the receive that it has met; the receive waits again. Blocked senders are then asked
/// for its message again: what they were asked for before is older than the receive is now. Returns false if the
/// receive has to hold the message.
bool give_to_taker(Context& context, Peer& peer, Session& session, const EagerMessage& message,
                   PostedNode& node) CANELE_UNDER_LOCK {
  MessageTaker* const taker = taker_of(request_of(node));
  if (taker == nullptr || context.inspect_deliveries || !wait_again(context, session, node)) return false;
  if (!taker->take(peer.rank, message.payload)) {
    context.matcher.cancel(session.match, node);
    return false;
  }
  const CountsNow counts{context, peer};
  counts.met_posted();
  counts.delivered(message.payload.size(), message.payload.size());
  if (message.handle != Handle::none) acknowledge(context, peer, message.handle);
  credit_receiver::posted(context, node);  // not before: only now is it known that the message is not kept
  return true;
}

}  // namespace

[[gnu::noinline]] Verdict store_unexpected_eager(Context& context, Peer& peer, Session& session, EagerMessage eager,
                                                 PostedNode* node) {
  if (node != nullptr && give_to_taker(context, peer, session, eager, *node)) return Verdict::ok();
  const auto [tag, payload, handle] = eager;
  if (context.defer_filter.session == &session && node == nullptr && defers(context, peer, tag, payload.size()))
      [[unlikely]]
    return Verdict::retry();
  const std::uint8_t traits = Message::is_charged | (handle != Handle::none ? Message::is_synchronous : 0);
  Message* message = make_message(context, peer, {tag, traits, {payload.size(), handle, 0, 0}, payload});
  if (message == nullptr || !store_unexpected(context, session, node, *message)) {
    if (node != nullptr && handle != Handle::none) acknowledge(context, peer, handle, CANELE_ENOMEM);
    return no_room(context, peer, {tag, payload.size(), wire::credit_cost_of_eager(payload.size()), node});
  }
  CANELE_COVER(eager_kept);
  return Verdict::ok();
}

Verdict on_session(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  if (payload.empty() || payload.size() > wire::max_label)
    return Verdict::violation("a session label has a wrong length");
  const std::string_view label(reinterpret_cast<const char*>(payload.data()), payload.size());
  Session* session = context.sessions.find(label);
  const bool is_new = session == nullptr;
  if (is_new) {
    if (context.sessions.made_by(peer.rank) >= SessionTable::most_mentioned) {
      return Verdict::violation("it announced more sessions that are not open here than may wait for that");
    }
    session = &context.sessions.find_or_make(context, label);
    context.sessions.note_maker(*session, peer.rank);
  }
  CANELE_COVER(session_announced);
  Session* const before = peer.names.learn(head.session, *session);
  ++session->mentions;
  if (before != nullptr) {  // the number means another session from now on, or the same label opened again
    --before->mentions;
    context.sessions.release_if_unused(*before);
  }
  if (context.session_created && is_new) context.session_created(*session);
  return Verdict::ok();
}

[[gnu::noinline]] Verdict on_eager(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  Handle handle = Handle::none;
  if (head.type == wire::Type::eager_sync && (!wire::take(payload, handle) || handle == Handle::none)) {
    return Verdict::violation("a synchronous message is too short");
  }
  return deliver_eager(context, peer, head, payload, handle);
}

Verdict on_ack(Context& context, Peer& peer, const wire::Head& head) {
  const Handle handle{head.tag};
  Request* request = context.sends.find(handle);
  if (request == nullptr || request->rank != peer.rank || request->rendezvous || !request->synchronous ||
      !request->announced()) {
    return Verdict::violation("an acknowledgement names no synchronous send");
  }
  CANELE_COVER(synchronous_acknowledged);
  context.sends.remove(handle);
  context.finish(*request, send_path::decode_outcome(head.seq));
  return Verdict::ok();
}

namespace {

/// Moves the bytes of a message that the request owns, now that there is memory for them. Then discards the message.
void consume(Context& context, Request& request, Message& message) CANELE_UNDER_LOCK {
  Peer& peer = context.peer(message.source);
  if (message.rendezvous()) {
    CANELE_COVER(unexpected_rts_taken);
    request.needs_fin = message.needs_fin();
    context.start_transfer(request, message);
  } else {
    CANELE_COVER(unexpected_eager_taken);
    if (message.synchronous()) acknowledge(context, peer, message.handle());
    copy_eager(context, request, peer, {message.bytes(), message.stored});
  }
  discard(context, message);
}

/// Gives a new receive the message that it has taken out of the tables.
void on_match(Context& context, Request& request, Message& message) CANELE_UNDER_LOCK {
  if (fits_fast_path(context, request, request.data, message))
    return take_fast(context, request, request.data.base, message);
  no_longer_unexpected(context, message);
  ++request.session->pending;
  deliver_to(context, request, message);
}

/// Completes the posting of a receive that is in the tables, and waits.
void wait(Context& context, Request& request) CANELE_UNDER_LOCK {
  const PostedNode& node = request.receive.node;
  ++request.session->pending;
  credit_receiver::posted(context, node);
  if (node.source == rank_any) return;
  Peer& peer = context.peer(node.source);  // opens the connection in the background
  if (peer.disconnected()) [[unlikely]] {
    CANELE_COVER(receive_from_disconnected);
    take_out(context, request);
    context.finish(request, peer.error);
  } else if (request.data.length >= RtrTable::shortest) {
    context.receive_posted(request, peer);
  }
}

}  // namespace

/// Ends a receive for which there is no memory: neither to look for its message, nor to queue it. The matcher has
/// changed nothing.
[[gnu::cold]] static void end_without_memory(Context& context, Request& request) CANELE_UNDER_LOCK {
  CANELE_COVER_RARE(no_memory_ends_receive);
  ++request.session->pending;
  set_envelope(request, request.receive.node.tag, request.receive.node.source, 0);
  context.finish(request, CANELE_ENOMEM);
}

void accept(Context& context, Request& request) {
  const PostedNode& node = request.receive.node;
  context.trace(Event::receive_posted, node.source, request.session, node.tag, request.data.length);
  UnexpectedNode* found = nullptr;
  try {
    found = context.matcher.post(request.session->match, request.receive.node);
  } catch (const std::bad_alloc&) {
    return end_without_memory(context, request);
  }
  if (found != nullptr) return on_match(context, request, static_cast<Message&>(*found));
  wait(context, request);
}

void accept_searched(Context& context, Request& request, Message* message) {
  const PostedNode& node = request.receive.node;
  context.trace(Event::receive_posted, node.source, request.session, node.tag, request.data.length);
  if (message != nullptr) return on_match(context, request, *message);
  try {
    context.matcher.queue(request.session->match, request.receive.node);
  } catch (const std::bad_alloc&) {
    return end_without_memory(context, request);
  }
  wait(context, request);
}

void discard(Context& context, Message& message) {
  if (message.charged()) credit_receiver::released(context, context.peer(message.source), message.credit_cost());
  context.messages.release(message);
}

void deliver_to(Context& context, Request& request, Message& message) {
  set_envelope(request, message.tag, message.source, message.length());
  context.trace(Event::receive_matched, message.source, request.session, message.tag, message.length());
  if (!request.unbound) {
    consume(context, request, message);
    return;
  }
  CANELE_COVER(unbound_receive_holds);
  matched_unbound::add(context, request, message);
  context.publish(request, event::header);
  if (MessageTaker* const taker = taker_of(request); taker != nullptr) taker->held();
}

void bind(Context& context, Request& request) {
  if (request.stage != Request::Stage::matched_unbound) return;  // the end of the engine came first
  CANELE_COVER(unbound_receive_bound);
  Message& message = matched_unbound::remove(context, request);
  request.unbound = false;
  transition(request, Request::Stage::posted);
  consume(context, request, message);
}

void complete_receive(Context& context, Request& request, Peer& peer, std::uint64_t delivered_bytes) {
  if (request.receive.sink == nullptr) return count_and_finish(context, request, peer, delivered_bytes);
  if (request.role != Request::InternalRole::relay_buffer)
    count(context, request, context.peer(request.rank), delivered_bytes);
  request.receive.sink->on_receive_end(context, request, outcome_of(request));
}

void fail_receive(Context& context, Request& request, int error) {
  context.trace(Event::receive_failed, request.rank, request.session, request.status_tag);
  if (request.receive.sink != nullptr) return request.receive.sink->on_receive_end(context, request, error);
  context.finish(request, error);
}

}  // namespace canele::comm::receive_path
