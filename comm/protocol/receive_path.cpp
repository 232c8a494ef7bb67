// SPDX-License-Identifier: BSD-3-Clause
//
// Receive: (1) the driver presents a packet, (2) it is parsed, (3) each chunk is checked, (4) envelopes are matched,
// (5) data is copied once into the user's memory, or kept. Large messages go on in rendezvous.cpp.
//
// Threads: under the engine's lock.
// Surprise: a chunk that makes no sense ends the connection, never the process.
#include "comm/protocol/receive_path.hpp"

#include <algorithm>
#include <cstring>

#include "comm/core/data.hpp"
#include "comm/packet/wire.hpp"
#include "comm/protocol/advert.hpp"
#include "comm/protocol/bundle.hpp"
#include "comm/protocol/flow_in.hpp"
#include "comm/protocol/flow_out.hpp"
#include "comm/protocol/rendezvous.hpp"
#include "comm/protocol/send_path.hpp"
#include "comm/protocol/shared_copy.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::receive_path {
namespace {

using Payload = std::span<const std::byte>;

/// In: payload of a session chunk. Out: the peer's index leads to our session of that label.
const char* on_session(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  if (payload.empty() || payload.size() > wire::max_label) return "a session label has a wrong length";
  Session* session =
      engine.sessions.find_or_make(engine, {reinterpret_cast<const char*>(payload.data()), payload.size()});
  if (session == nullptr) return "it announced more sessions than there can be";
  CANELE_MARK(session_announced);
  if (peer.sessions_in.size() <= head.session) peer.sessions_in.resize(head.session + 1u, nullptr);
  peer.sessions_in[head.session] = session;
  return nullptr;
}

const char* find_session(Peer& peer, const wire::Head& head, Session*& session) {
  if (head.session >= peer.sessions_in.size() || peer.sessions_in[head.session] == nullptr) {
    return "a message names a session that was not announced";
  }
  session = peer.sessions_in[head.session];
  return nullptr;
}

/// In: head of an envelope, and what it costs. Out: its session; the envelope is the next one, and paid for.
const char* check_envelope(Engine& engine, Peer& peer, const wire::Head& head, std::uint64_t price, Session*& session) {
  if (const char* wrong = find_session(peer, head, session); wrong != nullptr) return wrong;
  if (head.seq != peer.next_in) return "an envelope number is out of order";
  ++peer.next_in;
  return flow_in::charge(engine, peer, price);
}

/// In: what is known of a message. Out: a block that holds it, not yet filed.
Message* make_message(Engine& engine, Peer& peer, const wire::Head& head, Payload stored, Payload exposure) {
  Message* message = engine.messages.make(stored.size() + exposure.size());
  if (message == nullptr) return nullptr;
  message->tag = head.tag;
  message->source = peer.rank;
  message->peer = &peer;
  message->stored = static_cast<std::uint32_t>(stored.size());
  message->exposure = static_cast<std::uint16_t>(exposure.size());
  if (!stored.empty()) std::memcpy(message->bytes(), stored.data(), stored.size());
  if (!exposure.empty()) std::memcpy(message->bytes() + stored.size(), exposure.data(), exposure.size());
  return message;
}

void file_unexpected(Engine& engine, Session& session, Message& message) {
  engine.matcher.store(session.match, message);
  EngineCounters& c = engine.counters;
  c.add(Counter::unexpected_messages);
  c.add(Counter::unexpected_now);
  c.add(Counter::unexpected_bytes_now, message.stored);
  c.raise_to(Counter::unexpected_most, Counter::unexpected_now);
  c.raise_to(Counter::unexpected_bytes_most, Counter::unexpected_bytes_now);
}

/// In: a message that must be kept, and the late receive that it has matched, if any. Out: held by it, or filed.
void keep(Engine& engine, Session& session, PostedNode* node, Message& message) {
  if (message.charged) flow_in::stored(*message.peer, message.price());
  if (node == nullptr) {
    CANELE_MARK(unexpected_filed);
    file_unexpected(engine, session, message);
  } else {
    CANELE_MARK(late_receive_met);
    engine.counters.add(Counter::posted_matches);
    give(engine, request_of(*node), message);
  }
}

/// The receive has met its message.
void set_envelope(Request& request, std::uint64_t tag, int source, std::uint64_t length) {
  request.status_tag = tag;
  request.rank = source;
  request.status_length = length;
}

void acknowledge(Engine& engine, Peer& peer, std::uint64_t handle) {
  send_path::control(engine, peer, wire::Type::ack, handle, 0, 0, nullptr, 0);
}

/// A receive that was offered to its sender has met a message that came as any other.
[[gnu::cold, gnu::noinline]] const char* no_longer_offered(Engine& engine, Request& request) {
  CANELE_MARK(offer_met_other_message);
  return advert::withdraw(engine, request) ? nullptr : "it took an offered receive, and sent something else for it";
}

/// A posted receive leaves the tables without a message; what its sender was offered holds no more.
void take_out(Engine& engine, Request& request) {
  const PostedNode& node = request.receive.node;
  engine.matcher.cancel(request.session->match, request.receive.node);
  if (request.handle != 0) advert::forget(engine, request);
  set_envelope(request, node.tag, node.source, 0);
}

/// The fault switch: one bit of one message, so that users can see their checks fail.
[[gnu::cold]] void consider_flip(Engine& engine, const Request& request, std::uint64_t delivered_bytes) {
  constexpr std::uint64_t worth_flipping = 1024;
  if (delivered_bytes < worth_flipping || --engine.flip_countdown != 0) return;
  iovec piece;
  std::size_t covered = 0;
  // The top of a float's fraction, the foot of a double's exponent: a check that allows for rounding must see it, and
  // it makes no NaN, which compares as neither right nor wrong.
  const std::uint64_t victim = (delivered_bytes / 2 & ~std::uint64_t{7}) + 6;
  data::pieces(request.data, victim, 1, &piece, 1, &covered);
  if (covered == 1) *static_cast<std::uint8_t*>(piece.iov_base) ^= 0x40;
  engine.log(LogLevel::warning, "fault switch: flipped one bit of a received message");
}

/// The receive is over, its data is where it belongs.
inline void count_and_finish(Engine& engine, Request& request, Peer& peer, std::uint64_t bytes) {
  peer.counters.add(Counter::messages_received);
  peer.counters.add(Counter::bytes_received, bytes);
  if (engine.flip_countdown != 0) [[unlikely]]
    consider_flip(engine, request, bytes);
  engine.finish(request, request.status_length > request.data.length ? CANELE_ETRUNC : CANELE_OK);
}

/// Step 5 for an eager message whose receive is there and has memory.
[[gnu::always_inline]] inline void copy_eager(Engine& engine, Request& request, Peer& peer, Payload payload) {
  const std::size_t copied = data::scatter(request.data, 0, payload.data(), payload.size());
  count_and_finish(engine, request, peer, copied);
}

/// Step 5 for an eager message that nobody waits for, or only a late receive.
[[gnu::noinline]] const char* keep_eager(Engine& engine, Peer& peer, Session& session, const wire::Head& head,
                                         Payload payload, std::uint64_t handle, PostedNode* node) {
  Message* message = make_message(engine, peer, head, payload, {});
  if (message == nullptr) return "there is no memory for an unexpected message";
  message->length = payload.size();
  message->handle = handle;
  message->synchronous = handle != 0;
  message->charged = true;
  CANELE_MARK(eager_kept);
  keep(engine, session, node, *message);
  return nullptr;
}

/// Steps 3 to 5 for an eager message; `handle` is 0 unless its sender waits for the match.
[[gnu::always_inline]] inline const char* deliver_eager(Engine& engine, Peer& peer, const wire::Head& head,
                                                        Payload payload, std::uint64_t handle) {
  Session* session = nullptr;
  const std::uint64_t price = wire::charge_of_eager(payload.size());
  if (const char* wrong = check_envelope(engine, peer, head, price, session); wrong != nullptr) [[unlikely]]
    return wrong;
  PostedNode* node = engine.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).late) return keep_eager(engine, peer, *session, head, payload, handle, node);
  Request& request = request_of(*node);
  engine.counters.add(Counter::posted_matches);
  if (request.handle != 0) [[unlikely]] {
    if (const char* wrong = no_longer_offered(engine, request); wrong != nullptr) return wrong;
  }
  set_envelope(request, head.tag, peer.rank, payload.size());
  CANELE_MARK(eager_met_posted);
  if (handle != 0) {
    CANELE_MARK(synchronous_met_posted);
    acknowledge(engine, peer, handle);
  }
  copy_eager(engine, request, peer, payload);
  return nullptr;
}

[[gnu::noinline]] const char* on_eager(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint64_t handle = 0;
  if (head.type == wire::Type::eager_sync && (!wire::take(payload, handle) || handle == 0)) {
    return "a synchronous message is too short";
  }
  return deliver_eager(engine, peer, head, payload, handle);
}

/// The parts of a request to send, or of an offer.
struct Announced {
  wire::Rts rts;
  Payload header, exposure;
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

/// In: a request to send and the receive that it has met. Out: the data moves.
const char* meet(Engine& engine, Peer& peer, const wire::Head& head, const Announced& announced, Request& request) {
  const wire::Rts& rts = announced.rts;
  if (request.handle != 0) {
    if (const char* wrong = no_longer_offered(engine, request); wrong != nullptr) return wrong;
  }
  engine.counters.add(Counter::posted_matches);
  set_envelope(request, head.tag, peer.rank, rts.length);
  request.confirm = rts.confirm != 0;
  CANELE_MARK(rts_met_posted);
  rendezvous::start(engine, request, peer, rts.handle, announced.exposure, rts.exposed);
  return nullptr;
}

/// In: a request to send that nobody waits for, or only a late receive.
const char* keep_rts(Engine& engine, Peer& peer, Session& session, const wire::Head& head, const Announced& announced,
                     bool charged, PostedNode* node) {
  const wire::Rts& rts = announced.rts;
  Message* message = make_message(engine, peer, head, announced.header, announced.exposure);
  if (message == nullptr) return "there is no memory for an unexpected message";
  message->length = rts.length;
  message->handle = rts.handle;
  message->rendezvous = true;
  CANELE_MARK(rts_kept);
  message->confirm = rts.confirm != 0;
  message->exposed_by = rts.exposed;
  message->charged = charged;
  keep(engine, session, node, *message);
  return nullptr;
}

const char* on_rts(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  Announced announced;
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  const wire::Rts& rts = announced.rts;
  Session* session = nullptr;
  const std::uint64_t price = wire::charge_of_rts(rts.header);
  if (const char* wrong = check_envelope(engine, peer, head, price, session); wrong != nullptr) return wrong;
  if (rts.receive != 0) return advert::on_bound(engine, peer, *session, head, rts, announced.exposure);
  PostedNode* node = engine.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).late) {
    return keep_rts(engine, peer, *session, head, announced, true, node);
  }
  return meet(engine, peer, head, announced, request_of(*node));
}

/// A withheld message. It is taken by a receive that was posted before its sender was asked, kept for a probe that was
/// made before, or forgotten: receives posted since then may be meant for older messages, which were refused already.
const char* on_offer(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  wire::Offer offer;
  Announced announced;
  if (!wire::take(payload, offer)) return "an offer is too short";
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  Session* session = nullptr;
  if (const char* wrong = find_session(peer, head, session); wrong != nullptr) return wrong;
  if (announced.rts.receive != 0) return "an offer names a receive";
  if (const char* wrong = flow_in::check(peer, offer, head.seq); wrong != nullptr) return wrong;
  const char* wrong = nullptr;
  PostedNode* node = engine.matcher.peek(session->match, head.tag, peer.rank);
  bool taken = node != nullptr && node->stamp < offer.stamp;
  if (taken) {
    CANELE_MARK(offer_met_posted);
    engine.matcher.cancel(session->match, *node);
    Request& request = request_of(*node);
    wrong = request.late ? keep_rts(engine, peer, *session, head, announced, false, node)
                         : meet(engine, peer, head, announced, request);
  } else if (node == nullptr && flow_in::wanted_by_probe(engine, offer.stamp, session->number, peer.rank, head.tag)) {
    taken = true;
    wrong = keep_rts(engine, peer, *session, head, announced, false, nullptr);
  }
  if (wrong == nullptr && !peer.gone()) flow_in::offered(engine, peer, offer, taken);
  return wrong;
}

const char* on_ack(Engine& engine, Peer& peer, const wire::Head& head) {
  Request* request = engine.sends.find(head.tag);
  if (request == nullptr || request->rank != peer.rank || request->rendezvous || !request->synchronous) {
    return "an acknowledgement names no synchronous send";
  }
  CANELE_MARK(synchronous_acknowledged);
  engine.sends.remove(head.tag);
  engine.finish(*request, CANELE_OK);
  return nullptr;
}

const char* on_chunk(Engine& engine, Peer& peer, const wire::Chunk& chunk) {
  switch (chunk.head.type) {
    case wire::Type::eager:
    case wire::Type::eager_sync:
      return on_eager(engine, peer, chunk.head, chunk.payload);
    case wire::Type::rts:
      return on_rts(engine, peer, chunk.head, chunk.payload);
    case wire::Type::cts:
      return rendezvous::on_cts(engine, peer, chunk.head.tag, chunk.payload);
    case wire::Type::fin:
      return rendezvous::on_fin(engine, peer, chunk.head.tag, chunk.payload);
    case wire::Type::ack:
      return on_ack(engine, peer, chunk.head);
    case wire::Type::session:
      return on_session(engine, peer, chunk.head, chunk.payload);
    case wire::Type::bye:
      CANELE_MARK(peer_left);
      engine.fail_peer(peer, CANELE_EPEER, false, "it has left the job");
      return nullptr;
    case wire::Type::seen:
      engine.mark_dirty(peer);
      return bundle::seen(peer, chunk.head.tag);
    case wire::Type::again:
      rendezvous::on_again(engine, peer, chunk.head.tag);
      return nullptr;
    case wire::Type::rtr:
      return advert::on_rtr(engine, peer, chunk.head, chunk.payload);
    case wire::Type::placed:
      return shared_copy::on_placed(engine, peer, chunk.head.tag);
    case wire::Type::credit:
      return flow_out::on_credit(engine, peer, chunk.head.tag);
    case wire::Type::withheld:
      flow_in::on_withheld(engine, peer, chunk.head.tag != 0);
      return nullptr;
    case wire::Type::resume:
      return flow_out::on_resume(engine, peer, chunk.head.tag);
    case wire::Type::offer:
      return on_offer(engine, peer, chunk.head, chunk.payload);
    case wire::Type::answer:
      return flow_out::on_answer(engine, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::numbered:
      return "a packet number is not at the front of its packet";
  }
  return "a chunk is of no known type";
}

void no_longer_unexpected(Engine& engine, const Message& message) {
  engine.counters.sub(Counter::unexpected_now);
  engine.counters.sub(Counter::unexpected_bytes_now, message.stored);
}

/// Its memory is free again, and its sender may send as much.
void discard(Engine& engine, Message& message) {
  if (message.charged) flow_in::released(engine, *message.peer, message.price());
  engine.messages.release(message);
}

/// Moves the bytes of a message that the request owns, now that there is memory for them; ends the message.
void consume(Engine& engine, Request& request, Message& message) {
  Peer& peer = *message.peer;
  if (message.rendezvous) {
    CANELE_MARK(unexpected_rts_taken);
    request.confirm = message.confirm;
    rendezvous::start(engine, request, peer, message.handle, message.exposed(), message.exposed_by);
  } else {
    CANELE_MARK(unexpected_eager_taken);
    if (message.synchronous) acknowledge(engine, peer, message.handle);
    copy_eager(engine, request, peer, {message.bytes(), message.stored});
  }
  discard(engine, message);
}

}  // namespace

const char* packet(Engine& engine, Peer& peer, std::span<const std::byte> bytes) {
  peer.counters.add(Counter::packets_received);
  wire::Head head;
  if (!wire::peek(bytes, head)) return "a packet is shorter than the head of a chunk";
  if (wire::is_one_eager(head, bytes.size())) return deliver_eager(engine, peer, head, bytes.subspan(sizeof head), 0);
  if (head.type == wire::Type::numbered && head.size == 0) {
    return bundle::arrived(engine, peer, head, bytes.subspan(sizeof head));
  }
  return chunks(engine, peer, bytes);
}

const char* chunks(Engine& engine, Peer& peer, std::span<const std::byte> bytes) {
  if (bytes.empty()) return "a packet is empty";
  while (!bytes.empty() && !peer.gone()) {
    wire::Chunk chunk;
    if (const char* wrong = wire::take_chunk(bytes, chunk); wrong != nullptr) return wrong;
    if (const char* wrong = on_chunk(engine, peer, chunk); wrong != nullptr) return wrong;
  }
  return nullptr;
}

void accept(Engine& engine, Request& request) {
  ++request.session->pending;
  PostedNode& node = request.receive.node;
  UnexpectedNode* found = engine.matcher.post(request.session->match, node);
  if (found != nullptr) {
    auto& message = static_cast<Message&>(*found);
    no_longer_unexpected(engine, message);
    give(engine, request, message);
    return;
  }
  flow_in::posted(engine, node.source);
  if (node.source == rank_any) return;
  Peer& peer = engine.peer(node.source);  // opens the connection in the background
  if (peer.gone()) {
    CANELE_MARK(receive_from_the_gone);
    take_out(engine, request);
    engine.finish(request, peer.error);
  } else if (request.data.length >= advert::least) {
    advert::offer(engine, request, peer);
  }
}

void give(Engine& engine, Request& request, Message& message) {
  set_envelope(request, message.tag, message.source, message.length);
  if (!request.late) {
    consume(engine, request, message);
    return;
  }
  CANELE_MARK(late_receive_holds);
  request.receive.message = &message;
  request.stage = Request::Stage::held;
  engine.publish(request, event::header);
}

void bind(Engine& engine, Request& request) {
  assert(request.stage == Request::Stage::held);
  CANELE_MARK(late_receive_bound);
  Message& message = *request.receive.message;
  request.receive.message = nullptr;
  request.late = false;
  request.stage = Request::Stage::posted;
  consume(engine, request, message);
}

void delivered(Engine& engine, Request& request, Peer& peer, std::uint64_t delivered_bytes) {
  count_and_finish(engine, request, peer, delivered_bytes);
}

void end_posted(Engine& engine, int source, int error) {
  std::vector<Request*> doomed;
  const auto consider = [&](PostedNode& node) {
    if (source == rank_any || node.source == source) doomed.push_back(&request_of(node));
  };
  engine.matcher.each_in_tables(consider);
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    Matcher::each_in_session(engine.sessions.at(i).match, consider);
  }
  for (Request* request : doomed) {
    CANELE_MARK(posted_receive_ended);
    take_out(engine, *request);
    request->cancelled = error == CANELE_ECANCELED;
    engine.finish(*request, error);
  }
}

void cancel(Engine& engine, Request& request) {
  const bool posted =
      request.kind == Request::Kind::receive && request.stage == Request::Stage::posted && request.receive.node.queued;
  const bool waits = posted && (request.handle == 0 || advert::withdraw(engine, request));
  if (waits) {
    CANELE_MARK(cancel_took_out);
    take_out(engine, request);
    request.cancelled = true;
  }
  const bool ended = request.stage == Request::Stage::idle;  // while this was linked: it waits for us to be told
  request.word.fetch_and(~RequestWord::cancel_bit, std::memory_order_acq_rel);
  if (waits) {
    engine.finish(request, CANELE_ECANCELED);
  } else if (ended) {
    CANELE_MARK(cancel_came_after_the_end);
    const bool receive = request.kind == Request::Kind::receive;
    engine.publish(request, receive ? event::received | event::finalized : event::finalized);
  }
}

void probe(Engine& engine, ProbeOp& op) {
  Session& session = *op.session;
  UnexpectedNode* node = engine.matcher.find(session.match, op.source, op.tag, op.mask);
  op.found = node != nullptr;
  if (node == nullptr) {
    flow_in::missed(engine, {session.number, op.source, op.tag, op.mask, 0});
  } else {
    auto& message = static_cast<Message&>(*node);
    op.status = {CANELE_OK, message.source, message.tag, message.length, 0};
    if (op.into != nullptr) {
      CANELE_MARK(probe_took);
      engine.matcher.take(session.match, message);
      no_longer_unexpected(engine, message);
      ++session.pending;
      Request& request = *op.into;
      set_envelope(request, message.tag, message.source, message.length);
      request.receive.message = &message;
      request.stage = Request::Stage::held;
      request.word.fetch_or(event::header, std::memory_order_acq_rel);  // told by the return of the call
    }
  }
  op.answered.store(true, std::memory_order_release);
}

void drop_unexpected(Engine& engine, Session& session) {
  while (UnexpectedNode* oldest = engine.matcher.find(session.match, rank_any, 0, 0)) {
    auto& message = static_cast<Message&>(*oldest);
    engine.matcher.take(session.match, message);
    no_longer_unexpected(engine, message);
    discard(engine, message);
  }
}

}  // namespace canele::comm::receive_path
