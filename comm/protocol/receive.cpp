// SPDX-License-Identifier: BSD-3-Clause
//
// Receive, in five steps: (1) the driver presents a packet; (2) it is parsed. (3) Each chunk is checked. (4) Envelopes
// are matched. (5) The data is copied once into the user's memory, or kept. Small messages take the fast path of
// receive_eager.hpp; large ones go on in rendezvous/rendezvous.cpp.
//
// A malformed chunk ends the connection, never the process.
#include "comm/protocol/receive.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/link/sequencing.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/held.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::receive_path {

const char try_later[] = "not now: there is no memory for it, or what comes before it is waited for";

void acknowledge(Engine& engine, Peer& peer, std::uint64_t handle, int outcome) {
  send_path::control(engine, peer, wire::Type::ack, handle, static_cast<std::uint32_t>(-outcome), 0, nullptr, 0);
}

[[gnu::cold, gnu::noinline]] const char* no_longer_offered(Engine& engine, Request& request) {
  CANELE_MARK(offer_met_other_message);
  return advert::withdraw(engine, request) ? nullptr : "it took an offered receive, and sent something else for it";
}

[[gnu::cold]] void look_closely(Engine& engine, const Request& request, std::uint64_t delivered_bytes) {
  constexpr std::uint64_t worth_flipping = 1024;
  engine.trace(Event::receive_done, request.rank, request.session, request.status_tag, delivered_bytes);
  if (engine.flip_countdown == 0 || delivered_bytes < worth_flipping || --engine.flip_countdown != 0) return;
  iovec piece;
  std::size_t covered = 0;
  // This byte is the top of a float's fraction, and the foot of a double's exponent. So a check that allows for
  // rounding must see the flip. It makes no NaN, which compares as neither right nor wrong.
  const std::uint64_t victim = (delivered_bytes / 2 & ~std::uint64_t{7}) + 6;
  data::pieces(request.data, victim, 1, &piece, 1, &covered);
  if (covered == 1) *static_cast<std::uint8_t*>(piece.iov_base) ^= 0x40;
  engine.log(LogLevel::warning, "fault switch: flipped one bit of a received message");
}

namespace {

/// Handles a session chunk: the peer's index leads to our session of that label from then on.
const char* on_session(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  if (payload.empty() || payload.size() > wire::max_label) return "a session label has a wrong length";
  const std::string_view label(reinterpret_cast<const char*>(payload.data()), payload.size());
  Session* session = engine.sessions.find(label);
  const bool is_new = session == nullptr;
  if (is_new) {
    if (engine.sessions.made_by(peer.rank) >= SessionTable::most_mentioned) {
      return "it announced more sessions that are not open here than may wait for that";
    }
    session = &engine.sessions.find_or_make(engine, label);
    engine.sessions.note_maker(*session, peer.rank);
  }
  CANELE_MARK(session_announced);
  Session* const before = peer.names.hear(head.session, *session);
  ++session->mentions;
  if (before != nullptr) {  // the number means another session from now on, or the same label opened again
    --before->mentions;
    engine.sessions.settle(*before);
  }
  if (engine.new_session && is_new) engine.new_session(*session);
  return nullptr;
}

/// Makes a message that holds what is known of it; `origin` is used if the traits ask for one. The message is in no
/// table yet.
Message* make_message(Engine& engine, const Peer& peer, const wire::Head& head, std::uint8_t traits,
                      const Message::Origin& origin, Payload stored, Payload exposure) {
  const std::size_t behind = Message::origin_size(traits) + stored.size() + exposure.size();
  Message* message = CANELE_BUGGIFY(no_memory_message) ? nullptr : engine.messages.make(behind);
  if (message == nullptr) return nullptr;
  message->tag = head.tag;
  message->source = peer.rank;
  message->traits = traits;
  message->stored = static_cast<std::uint32_t>(stored.size());
  if (message->has_origin()) new (&message->origin()) Message::Origin(origin);
  if (!stored.empty()) std::memcpy(message->bytes(), stored.data(), stored.size());
  if (!exposure.empty()) std::memcpy(message->bytes() + stored.size(), exposure.data(), exposure.size());
  return message;
}

/// Files the message in the tables. Returns false if there is no memory for its places there; nothing has changed then.
bool store(Engine& engine, Session& session, Message& message) {
  try {
    engine.matcher.store(session.match, message);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Accounts for a message that has just been stored. Afterwards it may be gone: the owner of its session may refuse it.
void note_unexpected(Engine& engine, Session& session, Message& message) {
  CANELE_MARK(unexpected_filed);
  engine.trace(Event::unexpected_stored, message.source, &session, message.tag, message.length());
  EngineCounters& c = engine.counters;
  c.add(Counter::unexpected_messages);
  c.add(Counter::unexpected_now);
  c.add(Counter::unexpected_bytes_now, message.stored);
  c.raise_to(Counter::unexpected_most, Counter::unexpected_now);
  c.raise_to(Counter::unexpected_bytes_most, Counter::unexpected_bytes_now);
  if (session.unmatched != nullptr) [[unlikely]]
    session.unmatched(session, message);
}

/// Keeps a message. The unbound receive that it has matched holds it, or it is filed if `node` is nullptr. Returns
/// false if there was no memory to file it; the message is gone then.
bool keep(Engine& engine, Session& session, PostedNode* node, Message& message) {
  if (node == nullptr && !store(engine, session, message)) {
    engine.messages.release(message);
    return false;
  }
  if (message.charged()) flow_in::stored(engine.peer(message.source), message.price());
  if (node == nullptr) {
    note_unexpected(engine, session, message);
  } else {
    CANELE_MARK(late_receive_met);
    engine.counters.add(Counter::posted_matches);
    give(engine, request_of(*node), message);
  }
  return true;
}

/// Undoes the envelope of a message that comes again: its number is not used yet, and its price is given back. Only for
/// messages that no receive waits for.
const char* comes_again(Peer& peer, std::uint64_t charged) {
  --peer.next_in;
  flow_in::take_back(peer, charged);
  return try_later;
}

/// Returns whether a message stays with its driver. A thread polls for messages of its session (Engine::not_yet), and
/// no receive waits for this one.
[[gnu::cold, gnu::noinline]] bool stays(Engine& engine, Peer& peer, const wire::Head& head, std::size_t length) {
  if (!engine.not_yet.stays(head.tag, peer.rank)) return false;
  comes_again(peer, wire::charge_of_eager(length));
  return true;
}

/// Answers for a message that has to be kept, but for which there is no memory. A message that no receive waits for
/// comes again. `charged` is what it cost; 0 means that it is a mere offer. An unbound receive is already out of the
/// tables, so it ends, and the message is lost with it.
[[gnu::cold]] const char* no_room(Engine& engine, Peer& peer, const wire::Head& head, std::uint64_t length,
                                  std::uint64_t charged, PostedNode* node) {
  if (node == nullptr) {
    if (charged == 0) return try_later;
    CANELE_MARK(no_memory_comes_again);
    return comes_again(peer, charged);
  }
  CANELE_MARK(no_memory_ends_late_receive);
  Request& request = request_of(*node);
  set_envelope(request, head.tag, peer.rank, length);
  engine.finish(request, CANELE_ENOMEM);
  return nullptr;
}

}  // namespace

[[gnu::noinline]] const char* keep_eager(Engine& engine, Peer& peer, Session& session, wire::Head head, Payload payload,
                                         std::uint64_t handle, PostedNode* node) {
  if (engine.not_yet.session == &session && node == nullptr && stays(engine, peer, head, payload.size())) [[unlikely]]
    return try_later;
  const std::uint8_t traits = Message::is_charged | (handle != 0 ? Message::is_synchronous : 0);
  Message* message = make_message(engine, peer, head, traits, {payload.size(), handle, 0, 0}, payload, {});
  if (message == nullptr || !keep(engine, session, node, *message)) {
    if (node != nullptr && handle != 0) acknowledge(engine, peer, handle, CANELE_ENOMEM);
    return no_room(engine, peer, head, payload.size(), wire::charge_of_eager(payload.size()), node);
  }
  CANELE_MARK(eager_kept);
  return nullptr;
}

namespace {

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
  const multicast::Announced* route = nullptr;  ///< of a multicast
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
const char* meet(Engine& engine, Peer& peer, const wire::Head& head, const Announced& announced, Request& request) {
  const wire::Rts& rts = announced.rts;
  if (request.handle != 0 && head.type == wire::Type::rts) {
    CANELE_MARK(offer_met_announcement);
    if (advert::withdraw_or_bind(engine, peer, request, head, rts, announced.exposure)) return nullptr;
  } else if (request.handle != 0) {
    if (const char* wrong = no_longer_offered(engine, request); wrong != nullptr) return wrong;
  }
  engine.counters.add(Counter::posted_matches);
  set_envelope(request, head.tag, peer.rank, rts.length);
  request.confirm = rts.confirm != 0;
  engine.trace(Event::receive_matched, peer.rank, request.session, head.tag, rts.length);
  CANELE_MARK(rts_met_posted);
  if (announced.route != nullptr) {
    request.receive.cast = &multicast::announced(engine, peer, *announced.route, rts, *request.session);
  }
  rendezvous::start(engine, request, peer, rts.handle, announced.exposure, rts.exposed);
  return nullptr;
}

/// Answers for an announced message for which there is no memory, see no_room(). An unbound receive ends, and its
/// sender is told.
[[gnu::cold]] const char* no_room_for_rts(Engine& engine, Peer& peer, Session& session, const wire::Head& head,
                                          const Announced& announced, std::uint64_t charged, PostedNode* node) {
  if (node != nullptr && announced.route != nullptr) {
    multicast::refused(engine, multicast::announced(engine, peer, *announced.route, announced.rts, session),
                       CANELE_ENOMEM);
  } else if (node != nullptr) {
    rendezvous::fin(engine, peer, announced.rts.handle, CANELE_ENOMEM);
  }
  return no_room(engine, peer, head, announced.rts.length, charged, node);
}

/// Refuses a multicast that cannot be filed. It does not come again, because it is known by now.
[[gnu::cold]] const char* refuse_cast(Engine& engine, Peer& peer, Cast& cast, std::uint64_t charged) {
  multicast::refused(engine, cast, CANELE_ENOMEM);
  if (charged == 0) return nullptr;
  flow_in::stored(peer, charged);
  flow_in::released(engine, peer, charged);
  return nullptr;
}

/// Keeps a request to send that no receive waits for, or only an unbound receive. `charged`: what its envelope cost; 0:
/// nothing.
const char* keep_rts(Engine& engine, Peer& peer, Session& session, const wire::Head& head, const Announced& announced,
                     std::uint64_t charged, PostedNode* node) {
  const wire::Rts& rts = announced.rts;
  const auto traits = static_cast<std::uint8_t>(Message::is_rendezvous | (charged != 0 ? Message::is_charged : 0) |
                                                (rts.confirm != 0 ? Message::must_confirm : 0));
  const Message::Origin origin{rts.length, rts.handle, static_cast<std::uint16_t>(announced.exposure.size()),
                               rts.exposed, announced.route != nullptr ? announced.route->route.id : 0};
  Message* message = make_message(engine, peer, head, traits, origin, announced.header, announced.exposure);
  if (message == nullptr) return no_room_for_rts(engine, peer, session, head, announced, charged, node);
  CANELE_MARK(rts_kept);
  if (announced.route != nullptr) multicast::announced(engine, peer, *announced.route, rts, session);
  const bool kept = keep(engine, session, node, *message);
  if (announced.route == nullptr) return kept ? nullptr : no_room(engine, peer, head, rts.length, charged, node);
  Cast* const cast = multicast::find(engine, peer.rank, announced.route->route.id);
  if (!kept) return refuse_cast(engine, peer, *cast, charged);
  // The owner of its session may have refused the message when it was filed. The cast is then gone.
  if (cast != nullptr) multicast::serve_waiting(engine, *cast);
  return nullptr;
}

const char* on_rts(Engine& engine, Peer& peer, const wire::Head& head, Payload payload) {
  Announced announced;
  multicast::Announced route;
  if (head.type == wire::Type::cast) {
    if (const char* wrong = multicast::take_route(engine, peer, payload, route); wrong != nullptr) return wrong;
    announced.route = &route;
  }
  if (const char* wrong = take_announced(payload, announced); wrong != nullptr) return wrong;
  const wire::Rts& rts = announced.rts;
  if (announced.route != nullptr && (rts.confirm == 0 || rts.receive != 0 || rts.length == 0)) {
    return "the envelope of a multicast is malformed";
  }
  Session* session = nullptr;
  const std::uint64_t price = wire::charge_of_rts(rts.header);
  if (const char* wrong = check_envelope(engine, peer, head, price, session); wrong != nullptr) return wrong;
  engine.trace(Event::rts_received, peer.rank, session, head.tag, rts.length);
  if (rts.receive != 0) return advert::on_bound(engine, peer, *session, head, rts, announced.exposure);
  PostedNode* node = engine.matcher.arrive(session->match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).late) {
    return keep_rts(engine, peer, *session, head, announced, price, node);
  }
  return meet(engine, peer, head, announced, request_of(*node));
}

/// Handles the offer of a withheld message. A receive that was posted before the sender was asked takes it. A probe
/// that has asked for it has it kept. Else it is forgotten: receives posted since then may be meant for older messages,
/// which were refused already.
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
    wrong = request.late ? keep_rts(engine, peer, *session, head, announced, 0, node)
                         : meet(engine, peer, head, announced, request);
  } else if (node == nullptr && offer.probe != 0 && flow_in::may_keep(peer)) {
    wrong = keep_rts(engine, peer, *session, head, announced, 0, nullptr);
    taken = wrong == nullptr;
    if (wrong == try_later) wrong = nullptr;  // the message stays where it is, with its sender
  }
  if (wrong == nullptr && !peer.gone()) flow_in::offered(engine, peer, offer, taken);
  return wrong;
}

const char* on_ack(Engine& engine, Peer& peer, const wire::Head& head) {
  Request* request = engine.sends.find(head.tag);
  if (request == nullptr || request->rank != peer.rank || request->rendezvous || !request->synchronous ||
      !request->announced()) {
    return "an acknowledgement names no synchronous send";
  }
  CANELE_MARK(synchronous_acknowledged);
  engine.sends.remove(head.tag);
  engine.finish(*request, rendezvous::outcome_of(head.seq));
  return nullptr;
}

const char* on_chunk(Engine& engine, Peer& peer, const wire::Chunk& chunk) {
  switch (chunk.head.type) {
    case wire::Type::eager:
    case wire::Type::eager_sync:
      return on_eager(engine, peer, chunk.head, chunk.payload);
    case wire::Type::rts:
    case wire::Type::cast:
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
    case wire::Type::share:
      return advert::on_share(engine, peer, chunk.head.tag, chunk.payload);
    case wire::Type::placed:
      return shared_copy::on_placed(engine, peer, chunk.head.tag);
    case wire::Type::credit:
      return flow_out::on_credit(engine, peer, chunk.head.tag);
    case wire::Type::withheld:
      return flow_in::on_withheld(engine, peer, chunk.head.tag != 0, chunk.head.seq) ? nullptr : try_later;
    case wire::Type::resume:
      return flow_out::on_resume(engine, peer, chunk.head, chunk.payload);
    case wire::Type::resumed:
      return flow_in::on_resumed(engine, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::offer:
      return on_offer(engine, peer, chunk.head, chunk.payload);
    case wire::Type::answer:
      return flow_out::on_answer(engine, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::want:
      return multicast::on_want(engine, peer, chunk.head, chunk.payload);
    case wire::Type::served:
      return multicast::on_served(engine, peer, chunk.head, chunk.payload);
    case wire::Type::elsewhere:
      return multicast::on_elsewhere(engine, peer, chunk.head, chunk.payload);
    case wire::Type::closing:
      peer.closing = true;
      return nullptr;
    case wire::Type::numbered:
      return "a packet number is not at the front of its packet";
  }
  return "a chunk is of no known type";
}

/// Moves the bytes of a message that the request owns, now that there is memory for them. Then discards the message.
void consume(Engine& engine, Request& request, Message& message) {
  Peer& peer = engine.peer(message.source);
  if (message.rendezvous()) {
    CANELE_MARK(unexpected_rts_taken);
    request.confirm = message.confirm();
    const std::uint32_t cast = message.origin().cast;
    if (cast != 0) request.receive.cast = multicast::find(engine, message.source, cast);
    rendezvous::start(engine, request, peer, message.handle(), message.exposed(), message.origin().exposed_by);
  } else {
    CANELE_MARK(unexpected_eager_taken);
    if (message.synchronous()) acknowledge(engine, peer, message.handle());
    copy_eager(engine, request, peer, {message.bytes(), message.stored});
  }
  discard(engine, message);
}

/// Gives a new receive the message that it has taken out of the tables.
void meet(Engine& engine, Request& request, Message& message) {
  if (is_simple(engine, request, request.data, message))
    return take_at_once(engine, request, request.data.base, message);
  no_longer_unexpected(engine, message);
  ++request.session->pending;
  give(engine, request, message);
}

/// Completes the posting of a receive that is in the tables, and waits.
void wait(Engine& engine, Request& request) {
  const PostedNode& node = request.receive.node;
  ++request.session->pending;
  flow_in::posted(engine, node);
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

/// Looks ahead in a packet of several chunks, if that pays. Where the driver shows what comes, DriverSlot has begun
/// before.
class LookingAhead {
 public:
  LookingAhead(Engine& engine, const Peer& peer, Payload packet)
      : engine_(engine), begins_(!engine.lookahead.has_one() && engine.matcher.is_large()) {
    if (begins_) engine.lookahead.begin(engine.matcher, peer, packet);
  }
  ~LookingAhead() {
    if (begins_) engine_.lookahead.end();
  }
  LookingAhead(const LookingAhead&) = delete;
  LookingAhead& operator=(const LookingAhead&) = delete;
  void step() const {
    if (engine_.lookahead.has_one()) engine_.lookahead.step(engine_.matcher);
  }

 private:
  Engine& engine_;
  bool begins_;
};

}  // namespace

[[gnu::noinline]] const char* other_packet(Engine& engine, Peer& peer, wire::Head first, Payload bytes) {
  engine.trace(Event::packet_received, peer.rank, nullptr, 0, bytes.size());
  if (const Payload payload = wire::one_long_eager(first, bytes); !payload.empty()) {
    CANELE_MARK(packet_is_one_long_eager);
    return deliver_eager(engine, peer, first, payload, 0);
  }
  if (first.type == wire::Type::numbered && first.size == 0) {
    return bundle::arrived(engine, peer, first, bytes.subspan(sizeof first));
  }
  return chunks(engine, peer, bytes, &peer.chunks_done);
}

const char* chunks(Engine& engine, Peer& peer, std::span<const std::byte> bytes, std::size_t* done) {
  const std::size_t size = bytes.size(), before = std::exchange(*done, 0);
  if (before >= size) return "a packet is empty";
  bytes = bytes.subspan(before);
  const LookingAhead looking(engine, peer, bytes);
  while (!bytes.empty() && !peer.gone()) {
    wire::Chunk chunk;
    const std::size_t left = bytes.size();
    if (const char* wrong = wire::take_chunk(bytes, chunk); wrong != nullptr) return wrong;
    if (const char* wrong = on_chunk(engine, peer, chunk); wrong != nullptr) {
      if (wrong == try_later) *done = size - left;
      return wrong;
    }
    if (!bytes.empty()) looking.step();
  }
  return nullptr;
}

/// Ends a receive for which there is no memory: neither to look for its message, nor to queue it. The matcher has
/// changed nothing.
[[gnu::cold]] static void end_without_memory(Engine& engine, Request& request) {
  CANELE_RARE_MARK(no_memory_ends_receive);
  ++request.session->pending;
  set_envelope(request, request.receive.node.tag, request.receive.node.source, 0);
  engine.finish(request, CANELE_ENOMEM);
}

void accept(Engine& engine, Request& request) {
  const PostedNode& node = request.receive.node;
  engine.trace(Event::receive_posted, node.source, request.session, node.tag, request.data.length);
  UnexpectedNode* found = nullptr;
  try {
    found = engine.matcher.post(request.session->match, request.receive.node);
  } catch (const std::bad_alloc&) {
    return end_without_memory(engine, request);
  }
  if (found != nullptr) return meet(engine, request, static_cast<Message&>(*found));
  wait(engine, request);
}

void accept_searched(Engine& engine, Request& request, Message* message) {
  const PostedNode& node = request.receive.node;
  engine.trace(Event::receive_posted, node.source, request.session, node.tag, request.data.length);
  if (message != nullptr) return meet(engine, request, *message);
  try {
    engine.matcher.queue(request.session->match, request.receive.node);
  } catch (const std::bad_alloc&) {
    return end_without_memory(engine, request);
  }
  wait(engine, request);
}

void discard(Engine& engine, Message& message) {
  if (message.charged()) flow_in::released(engine, engine.peer(message.source), message.price());
  engine.messages.release(message);
}

void give(Engine& engine, Request& request, Message& message) {
  set_envelope(request, message.tag, message.source, message.length());
  engine.trace(Event::receive_matched, message.source, request.session, message.tag, message.length());
  if (!request.late) {
    consume(engine, request, message);
    return;
  }
  CANELE_MARK(late_receive_holds);
  held::take(engine, request, message);
  engine.publish(request, event::header);
}

void bind(Engine& engine, Request& request) {
  if (request.stage != Request::Stage::held) return;  // the end of the engine came first
  CANELE_MARK(late_receive_bound);
  Message& message = held::release(engine, request);
  request.late = false;
  request.stage = Request::Stage::posted;
  consume(engine, request, message);
}

void delivered(Engine& engine, Request& request, Peer& peer, std::uint64_t delivered_bytes) {
  if (request.receive.cast == nullptr) return count_and_finish(engine, request, peer, delivered_bytes);
  if (request.part != Request::Part::stock) count(engine, request, engine.peer(request.rank), delivered_bytes);
  multicast::received(engine, request, outcome_of(request));
}

void failed(Engine& engine, Request& request, int error) {
  engine.trace(Event::receive_failed, request.rank, request.session, request.status_tag);
  if (request.receive.cast != nullptr) return multicast::received(engine, request, error);
  engine.finish(request, error);
}

}  // namespace canele::comm::receive_path
