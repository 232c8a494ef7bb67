// SPDX-License-Identifier: BSD-3-Clause
//
// Fast path of a small message that arrives: steps 2 to 5 of receive.cpp for a packet that is one eager message.
// The envelope is checked and matched, and the data is copied into the user's memory.
//
// Any thread may call it under the engine's lock. DriverSlot does, and so does receive.cpp, for the eager messages
// of longer packets.
//
// It is a header so that a driver's callback is one function. Rare cases are calls out of line: half of the
// instructions of a message went into saving and restoring registers that only those cases need.
#pragma once

#include <span>

#include "comm/engine/engine.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::receive_path {

using Payload = std::span<const std::byte>;

// ---- rare cases, out of line: receive.cpp ---------------------------------------------------------------------------

/// Takes a packet of several chunks, or of one chunk that is no short message. (Functions out of line get a head by
/// value. By reference, the head would have to be in memory for all others, too.)
const char* other_packet(Engine& engine, Peer& peer, wire::Head first, Payload bytes);
/// Does step 5 for an eager message that no receive waits for, or only an unbound receive.
const char* keep_eager(Engine& engine, Peer& peer, Session& session, wire::Head head, Payload payload,
                       std::uint64_t handle, PostedNode* node);
/// Takes back the offer of a receive that was offered to its sender, and has met a message that came as any other.
/// Returns nullptr, or what the sender did wrong.
const char* no_longer_offered(Engine& engine, Request& request);
/// Records a delivery for CANELE_TRACE. Also applies the fault switch, which flips one bit of one message, so that
/// users can see their checks fail.
void look_closely(Engine& engine, const Request& request, std::uint64_t delivered_bytes);
/// Answers a synchronous send. outcome: CANELE_OK if a receive has met its message, else why none ever will.
void acknowledge(Engine& engine, Peer& peer, std::uint64_t handle, int outcome = CANELE_OK);

/// Both take a posted receive: it gets an unexpected message, or waits. accept() searches for the message.
/// accept_searched() is called after a search: `message` was taken out of the tables, or is nullptr if there is none.
void accept(Engine& engine, Request& request);
void accept_searched(Engine& engine, Request& request, Message* message);

// ---- steps ----------------------------------------------------------------------------------------------------------

inline const char* find_session(Peer& peer, const wire::Head& head, Session*& session) {
  session = peer.names.find(head.session);
  return session != nullptr ? nullptr : "a message names a session that was not announced";
}

/// Checks that the envelope with this head is the next one of the peer, and charges its price to the peer. Returns
/// nullptr, or what is wrong.
[[gnu::always_inline]] inline const char* check_number(Engine& engine, Peer& peer, const wire::Head& head,
                                                       std::uint64_t price) {
  if (head.seq != peer.next_in) [[unlikely]]
    return "an envelope number is out of order";
  ++peer.next_in;
  return flow_in::charge(engine, peer, price);
}
/// Does what check_number() does, and finds the session of the envelope.
[[gnu::always_inline]] inline const char* check_envelope(Engine& engine, Peer& peer, const wire::Head& head,
                                                         std::uint64_t price, Session*& session) {
  if (const char* wrong = find_session(peer, head, session); wrong != nullptr) return wrong;
  return check_number(engine, peer, head, price);
}

/// Writes the envelope of its message into a receive that has met it.
inline void set_envelope(Request& request, std::uint64_t tag, int source, std::uint64_t length) {
  request.status_tag = tag;
  request.rank = source;
  request.status_length = length;
}

inline int outcome_of(const Request& request) {
  return request.status_length > request.data.length ? CANELE_ETRUNC : CANELE_OK;
}

/// Counts messages one by one. ShortRun::Counts counts those of a run together.
struct CountsNow {
  Engine& engine;
  Peer& peer;
  void kept() const {}
  void met_posted() const { engine.counters.add(Counter::posted_matches); }
  void delivered(std::uint64_t bytes, [[maybe_unused]] std::uint64_t sent) const {
    peer.counters.add(Counter::messages_received);
    peer.counters.add(Counter::bytes_received, bytes);
  }
};

[[gnu::always_inline]] inline void count(Engine& engine, const Request& request, Peer& peer, std::uint64_t bytes) {
  CountsNow{engine, peer}.delivered(bytes, bytes);
  if (engine.looks_closely) [[unlikely]]
    look_closely(engine, request, bytes);
}

/// Ends a receive whose data is where it belongs.
[[gnu::always_inline]] inline void count_and_finish(Engine& engine, Request& request, Peer& peer, std::uint64_t bytes) {
  count(engine, request, peer, bytes);
  engine.finish(request, outcome_of(request));
}

/// Does step 5, without counts, for an eager message whose receive is there and has memory. Returns the bytes copied.
[[gnu::always_inline]] inline std::size_t copy_and_finish(Engine& engine, Request& request, Payload payload) {
  const std::size_t copied = data::scatter(request.data, 0, payload.data(), payload.size());
  if (engine.looks_closely) [[unlikely]]
    look_closely(engine, request, copied);
  engine.finish_receive(request, payload.size() > request.data.length ? CANELE_ETRUNC : CANELE_OK);
  return copied;
}
inline void copy_eager(Engine& engine, Request& request, Peer& peer, Payload payload) {
  CountsNow{engine, peer}.delivered(copy_and_finish(engine, request, payload), payload.size());
}

/// Does steps 4 and 5 for an envelope that has been checked. `handle` is 0 unless the sender waits for the match.
template <typename Counts>
[[gnu::always_inline]] inline const char* match_eager(Engine& engine, Peer& peer, Session& session,
                                                      const wire::Head& head, Payload payload, std::uint64_t handle,
                                                      Counts& counts) {
  PostedNode* node = engine.matcher.arrive(session.match, head.tag, peer.rank);
  if (node == nullptr || request_of(*node).late) {
    counts.kept();
    return keep_eager(engine, peer, session, head, payload, handle, node);
  }
  Request& request = request_of(*node);
  counts.met_posted();
  if (request.handle != 0) [[unlikely]] {
    if (const char* wrong = no_longer_offered(engine, request); wrong != nullptr) {
      counts.kept();
      return wrong;
    }
  }
  set_envelope(request, head.tag, peer.rank, payload.size());
  CANELE_MARK(eager_met_posted);
  if (handle != 0) {
    CANELE_MARK(synchronous_met_posted);
    acknowledge(engine, peer, handle);
  }
  counts.delivered(copy_and_finish(engine, request, payload), payload.size());
  return nullptr;
}

/// Does steps 3 to 5.
[[gnu::always_inline]] static inline const char* deliver_eager(Engine& engine, Peer& peer, const wire::Head& head,
                                                               Payload payload, std::uint64_t handle) {
  Session* session = nullptr;
  const std::uint64_t price = wire::charge_of_eager(payload.size());
  if (const char* wrong = check_envelope(engine, peer, head, price, session); wrong != nullptr) [[unlikely]]
    return wrong;
  CountsNow counts{engine, peer};
  return match_eager(engine, peer, *session, head, payload, handle, counts);
}

// ---- a message that was there before its receive --------------------------------------------------------------------

inline void no_longer_unexpected(Engine& engine, const Message& message) {
  engine.counters.sub(Counter::unexpected_now);
  engine.counters.sub(Counter::unexpected_bytes_now, message.stored);
}

/// Returns whether neither the receive nor its message needs more than a copy of bytes.
inline bool is_simple(const Engine& engine, const Request& request, const canele_data_t& data, const Message& message) {
  return message.traits == Message::is_charged && data.segments == nullptr && !request.late &&
         message.stored <= data.length && !engine.looks_closely;
}

/// Fills what the request of a receive needs that does not end at once, but for the name of its node.
[[gnu::always_inline]] inline void fill_all_but_name(const Engine& engine, const Posting& posting) {
  Request& request = *posting.request;
  request.begin(engine);
  request.data = posting.data;
  request.handle = 0;
  request.receive.message = nullptr;
  request.receive.cast = nullptr;
}
[[gnu::always_inline]] inline void fill(const Engine& engine, const Posting& posting) {
  fill_all_but_name(engine, posting);
  posting.request->receive.node.name(posting.source, posting.tag, posting.mask);
}

/// Copies the message to the receive, and ends both. The receive has never been pending, and of its request only the
/// outcome is filled in.
[[gnu::always_inline]] inline void take_at_once(Engine& engine, Request& request, void* base, Message& message) {
  Peer& peer = *engine.peers[message.source];
  const std::size_t size = message.stored;
  no_longer_unexpected(engine, message);
  set_envelope(request, message.tag, message.source, size);
  data::copy(base, message.bytes_alone(), size);
  count(engine, request, peer, size);
  flow_in::released(engine, peer, wire::charge_of_eager(size));
  engine.messages.release(message, sizeof message + size);
  request.stage = Request::Stage::idle;
  engine.publish(request, event::received | event::finalized);
}

/// What has become of a posted receive.
enum class Accepted : std::uint8_t {
  over,   ///< has ended; nothing else has happened
  waits,  ///< is in the tables; nothing else has happened
  other   ///< more may have to be done outside the lock
};

/// Returns whether an exact receive, for which no message is there, needs nothing but its place in the tables.
inline bool waits_quietly(const Engine& engine, const Posting& posting) {
  if (posting.data.length >= advert::least || engine.event_log != nullptr || !engine.credit.starving.empty())
      [[unlikely]]
    return false;
  const Peer* const peer = engine.peers[posting.source];
  return peer != nullptr && !peer->gone();
}

/// Takes a posted receive. Rare and less simple cases are not in line: receive.cpp has the rest.
[[gnu::always_inline]] static inline Accepted accept_in_line(Engine& engine, const Posting& posting) {
  Request& request = *posting.request;
  Session& session = *posting.session;
  const bool exact = engine.matcher.has_short_way(posting.mask, posting.source);
  if (!exact || session.match.unexpected == 0) {
    fill_all_but_name(engine, posting);
    if (exact && waits_quietly(engine, posting)) [[likely]] {
      CANELE_MARK(receive_waits_at_once);
      engine.matcher.queue_named(session.match, request.receive.node, posting.tag, posting.mask, posting.source);
      ++session.pending;
      return Accepted::waits;
    }
    request.receive.node.name(posting.source, posting.tag, posting.mask);
    accept(engine, request);
    return Accepted::other;
  }
  auto* const message = static_cast<Message*>(engine.matcher.take_exact(session.match, posting.tag, posting.source));
  if (message != nullptr && is_simple(engine, request, posting.data, *message)) [[likely]] {
    CANELE_MARK(unexpected_taken_at_once);
    take_at_once(engine, request, posting.data.base, *message);
    return Accepted::over;
  }
  fill(engine, posting);
  accept_searched(engine, request, message);
  return Accepted::other;
}

/// Does step 2, for a whole packet. Returns nullptr, or what is wrong with the packet.
[[gnu::always_inline]] static inline const char* packet(Engine& engine, Peer& peer, Payload bytes) {
  peer.counters.add(Counter::packets_received);
  wire::Head head;
  if (!wire::peek(bytes, head)) [[unlikely]]
    return "a packet is shorter than the head of a chunk";
  if (!wire::is_one_eager(head, bytes.size())) return other_packet(engine, peer, head, bytes);
  return deliver_eager(engine, peer, head, bytes.subspan(sizeof head), 0);
}

}  // namespace canele::comm::receive_path
