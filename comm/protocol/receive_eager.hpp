// SPDX-License-Identifier: BSD-3-Clause
//
// Fast path of a small message that arrives: steps 2 to 5 of receive.cpp for a packet that is one eager message.
// The envelope is checked and matched, and the data is copied into the user's memory.
//
// Any thread may call it under the engine's lock. DriverInstance does, and so does receive.cpp, for the eager messages
// of longer packets.
//
// It is a header so that a driver's callback is one function. Rare cases are calls out of line: half of the
// instructions of a message went into saving and restoring registers that only those cases need.
#pragma once

#include <span>

#include "comm/protocol/credit_receiver.hpp"
#include "comm/state/context.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::receive_path {

using Payload = std::span<const std::byte>;

/// An eager message whose envelope has been checked.
struct EagerMessage {
  std::uint64_t tag;
  Payload payload;
  Handle handle;  ///< of a send that waits for the match; none: it does not wait
};

// ---- rare cases, out of line: receive.cpp ---------------------------------------------------------------------------

/// Does step 5 for an eager message that no receive waits for, or only an unbound receive.
Verdict store_unexpected_eager(Context& context, Peer& peer, Session& session, EagerMessage message,
                               PostedNode* node) CANELE_UNDER_LOCK;
/// Withdraws the RTR of a receive that has met a message which came as any other.
/// It is a violation if the sender has filled it with another message.
Verdict withdraw_rtr(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Records a delivery for CANELE_TRACE. Also applies the fault switch, which flips one bit of one message, so that
/// users can see their checks fail.
void inspect_delivery(Context& context, const Request& request, std::uint64_t delivered_bytes) CANELE_UNDER_LOCK;
/// Answers a synchronous send. outcome: CANELE_OK if a receive has met its message, else why none ever will.
void acknowledge(Context& context, Peer& peer, Handle handle, int outcome = CANELE_OK) CANELE_UNDER_LOCK;

/// Both take a posted receive: it gets an unexpected message, or waits. accept() searches for the message.
/// accept_searched() is called after a search: `message` was taken out of the tables, or is nullptr if there is none.
void accept(Context& context, Request& request);
void accept_searched(Context& context, Request& request, Message* message) CANELE_UNDER_LOCK;

// ---- steps, in the order in which they run --------------------------------------------------------------------------

[[gnu::always_inline]] inline Verdict check_envelope(Context& context, Peer& peer, const wire::Head& head,
                                                     std::uint64_t cost, Session*& session) CANELE_UNDER_LOCK;
[[gnu::always_inline]] inline Verdict check_number(Context& context, Peer& peer, const wire::Head& head,
                                                   std::uint64_t cost) CANELE_UNDER_LOCK;
inline Verdict find_session(Peer& peer, const wire::Head& head, Session*& session);
template <typename Counts>
[[gnu::always_inline]] inline Verdict match_eager(Context& context, Peer& peer, Session& session,
                                                  const EagerMessage& message, Counts& counts) CANELE_UNDER_LOCK;
[[gnu::always_inline]] inline std::size_t copy_and_finish(Context& context, Request& request,
                                                          Payload payload) CANELE_UNDER_LOCK;
inline void set_envelope(Request& request, std::uint64_t tag, int source, std::uint64_t length);
inline int outcome_of(const Request& request);

/// Counts messages one by one. ReceiveBurst::Counts counts those of a run together.
struct CountsNow {
  Context& context;
  Peer& peer;
  void kept() const {}
  void met_posted() const { context.counters.add(Counter::posted_matches); }
  void delivered(std::uint64_t bytes, [[maybe_unused]] std::uint64_t sent) const {
    peer.counters.add(Counter::messages_received);
    peer.counters.add(Counter::bytes_received, bytes);
  }
};

/// Does steps 3 to 5. `handle`: see EagerMessage.
[[gnu::always_inline]] static inline Verdict deliver_eager(Context& context, Peer& peer, const wire::Head& head,
                                                           Payload payload, Handle handle) CANELE_UNDER_LOCK {
  Session* session = nullptr;
  const std::uint64_t cost = wire::credit_cost_of_eager(payload.size());
  if (const Verdict v = check_envelope(context, peer, head, cost, session); !v.is_ok()) [[unlikely]]
    return v;
  CountsNow counts{context, peer};
  return match_eager(context, peer, *session, {head.tag, payload, handle}, counts);
}

/// Does what check_number() does, and finds the session of the envelope.
[[gnu::always_inline]] inline Verdict check_envelope(Context& context, Peer& peer, const wire::Head& head,
                                                     std::uint64_t cost, Session*& session) {
  if (const Verdict v = find_session(peer, head, session); !v.is_ok()) return v;
  return check_number(context, peer, head, cost);
}

inline Verdict find_session(Peer& peer, const wire::Head& head, Session*& session) {
  session = peer.names.find(head.session);
  return session != nullptr ? Verdict::ok() : Verdict::violation("a message names a session that was not announced");
}

/// Checks that the envelope with this head is the next one of the peer, and charges its cost to the peer.
[[gnu::always_inline]] inline Verdict check_number(Context& context, Peer& peer, const wire::Head& head,
                                                   std::uint64_t cost) {
  if (head.seq != peer.next_in) [[unlikely]]
    return Verdict::violation("an envelope number is out of order");
  ++peer.next_in;
  return credit_receiver::charge(context, peer, cost);
}

/// Does steps 4 and 5.
template <typename Counts>
[[gnu::always_inline]] inline Verdict match_eager(Context& context, Peer& peer, Session& session,
                                                  const EagerMessage& message, Counts& counts) {
  const Payload payload = message.payload;
  PostedNode* node = context.matcher.arrive(session.match, message.tag, peer.rank);
  if (node == nullptr || request_of(*node).unbound) {
    counts.kept();
    return store_unexpected_eager(context, peer, session, message, node);
  }
  Request& request = request_of(*node);
  counts.met_posted();
  if (request.handle != Handle::none) [[unlikely]] {
    if (const Verdict v = withdraw_rtr(context, request); !v.is_ok()) {
      counts.kept();
      return v;
    }
  }
  set_envelope(request, message.tag, peer.rank, payload.size());
  CANELE_COVER(eager_met_posted);
  if (message.handle != Handle::none) {
    CANELE_COVER(synchronous_met_posted);
    acknowledge(context, peer, message.handle);
  }
  counts.delivered(copy_and_finish(context, request, payload), payload.size());
  return Verdict::ok();
}

/// Writes the envelope of its message into a receive that has met it.
inline void set_envelope(Request& request, std::uint64_t tag, int source, std::uint64_t length) {
  request.status_tag = tag;
  request.rank = source;
  request.status_length = length;
}

/// Does step 5, without counts, for an eager message whose receive is there and has memory. Returns the bytes copied.
[[gnu::always_inline]] inline std::size_t copy_and_finish(Context& context, Request& request, Payload payload) {
  const std::size_t copied = data::scatter(request.data, 0, payload.data(), payload.size());
  if (context.inspect_deliveries) [[unlikely]]
    inspect_delivery(context, request, copied);
  context.finish_receive(request, payload.size() > request.data.length ? CANELE_ETRUNC : CANELE_OK);
  return copied;
}

inline void copy_eager(Context& context, Request& request, Peer& peer, Payload payload) CANELE_UNDER_LOCK {
  CountsNow{context, peer}.delivered(copy_and_finish(context, request, payload), payload.size());
}

[[gnu::always_inline]] inline void count(Context& context, const Request& request, Peer& peer,
                                         std::uint64_t bytes) CANELE_UNDER_LOCK {
  CountsNow{context, peer}.delivered(bytes, bytes);
  if (context.inspect_deliveries) [[unlikely]]
    inspect_delivery(context, request, bytes);
}

/// Ends a receive whose data is where it belongs.
[[gnu::always_inline]] inline void count_and_finish(Context& context, Request& request, Peer& peer,
                                                    std::uint64_t bytes) CANELE_UNDER_LOCK {
  count(context, request, peer, bytes);
  context.finish(request, outcome_of(request));
}

inline int outcome_of(const Request& request) {
  return request.status_length > request.data.length ? CANELE_ETRUNC : CANELE_OK;
}

// ---- a message that was there before its receive --------------------------------------------------------------------

inline void no_longer_unexpected(Context& context, const Message& message) {
  context.counters.sub(Counter::unexpected_now);
  context.counters.sub(Counter::unexpected_bytes_now, message.stored);
}

/// Returns whether neither the receive nor its message needs more than a copy of bytes.
inline bool fits_fast_path(const Context& context, const Request& request, const canele_data_t& data,
                           const Message& message) CANELE_UNDER_LOCK {
  return message.traits == Message::is_charged && data.segments == nullptr && !request.unbound &&
         message.stored <= data.length && !context.inspect_deliveries;
}

/// Fills what the request of a receive needs that does not end at once, but for the name of its node.
[[gnu::always_inline]] inline void fill_all_but_name(const Context& context, const Posting& posting) {
  Request& request = *posting.request;
  request.begin(context);
  request.data = posting.data;
  request.handle = Handle::none;
  request.receive.message = nullptr;
  request.receive.sink = nullptr;
}
[[gnu::always_inline]] inline void fill(const Context& context, const Posting& posting) {
  fill_all_but_name(context, posting);
  posting.request->receive.node.name(posting.source, posting.tag, posting.mask);
}

/// Copies the message to the receive, and ends both. The receive has never been pending, and of its request only the
/// outcome is filled in.
[[gnu::always_inline]] inline void take_fast(Context& context, Request& request, void* base,
                                             Message& message) CANELE_UNDER_LOCK {
  Peer& peer = *context.peers[message.source];
  const std::size_t size = message.stored;
  no_longer_unexpected(context, message);
  set_envelope(request, message.tag, message.source, size);
  data::copy(base, message.bytes_alone(), size);
  count(context, request, peer, size);
  credit_receiver::released(context, peer, wire::credit_cost_of_eager(size));
  context.messages.release(message, sizeof message + size);
  request.stage = Request::Stage::idle;  // from `posted`, which the same call has written
  context.publish(request, event::received | event::finalized);
}

/// What has become of a posted receive.
enum class Accepted : std::uint8_t {
  complete,  ///< has ended; nothing else has happened
  waits,     ///< is in the tables; nothing else has happened
  other      ///< more may have to be done outside the lock
};

/// Returns whether an exact receive, for which no message is there, needs nothing but its place in the tables.
inline bool waits_quietly(const Context& context, const Posting& posting) CANELE_UNDER_LOCK {
  if (posting.data.length >= RtrTable::shortest || context.event_log != nullptr ||
      !context.credit.blocked_senders.empty()) [[unlikely]]
    return false;
  const Peer* const peer = context.peers[posting.source];
  return peer != nullptr && !peer->disconnected();
}

/// Takes a posted receive. Rare and less simple cases are not in line: receive.cpp has the rest.
[[gnu::always_inline]] static inline Accepted accept_fast(Context& context, const Posting& posting) CANELE_UNDER_LOCK {
  Request& request = *posting.request;
  Session& session = *posting.session;
  const bool exact = context.matcher.has_fast_path(posting.mask, posting.source);
  if (!exact || session.match.unexpected == 0) {
    fill_all_but_name(context, posting);
    if (exact && waits_quietly(context, posting)) [[likely]] {
      CANELE_COVER(receive_posted_fast);
      context.matcher.queue_named(session.match, request.receive.node, posting.tag, posting.mask, posting.source);
      ++session.pending;
      return Accepted::waits;
    }
    request.receive.node.name(posting.source, posting.tag, posting.mask);
    accept(context, request);
    return Accepted::other;
  }
  auto* const message = static_cast<Message*>(context.matcher.take_exact(session.match, posting.tag, posting.source));
  if (message != nullptr && fits_fast_path(context, request, posting.data, *message)) [[likely]] {
    CANELE_COVER(unexpected_taken_fast);
    take_fast(context, request, posting.data.base, *message);
    return Accepted::complete;
  }
  fill(context, posting);
  accept_searched(context, request, message);
  return Accepted::other;
}

}  // namespace canele::comm::receive_path
