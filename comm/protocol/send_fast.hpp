// SPDX-License-Identifier: BSD-3-Clause
//
// Fast path of an eager send: does steps 1 to 6 of send.cpp at once, where nothing stands in the way of the message.
//
// Any thread may call it under the engine's lock; api/ and collectives/blocking_executor.cpp do. If try_send_fast()
// returns false, nothing was sent, and the caller posts the send normally.
//
// It is a header because half of what it did as a function was to save and restore its caller's registers.
#pragma once

#include "comm/protocol/send.hpp"
#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::send_path {

/// A message that is offered to the fast path.
struct Outgoing {
  const Session& session;
  std::uint64_t tag;
  const void* buffer;
  std::size_t length;
};

inline bool can_send_fast(const Peer* peer, const Session& session, std::size_t length);
[[gnu::always_inline]] static inline void account_send(Context& context, Peer& peer, drivers::Driver& driver,
                                                       const Outgoing& message) CANELE_UNDER_LOCK;

/// Sends a message that is too long for an inline send: writes it into the driver's buffer, as a packet of its own.
/// Returns what try_send_fast() returns. Out of line, because its copy costs more than a call. (It does not take an
/// Outgoing: that would have to be in memory for all messages.)
[[gnu::noinline]] bool send_reserved(Context& context, Peer& peer, const Session& session, std::uint64_t tag,
                                     const void* buffer, std::size_t length) CANELE_UNDER_LOCK;

/// Sends a message to a peer of an idle memory driver, with nothing queued before it. The packet that any strategy
/// would plan now holds this message only. So the message is written straight into the driver's line. Returns false if
/// the message has to take the normal path.
[[gnu::always_inline]] static inline bool try_send_fast(Context& context, int destination,
                                                        const Outgoing& message) CANELE_UNDER_LOCK {
  const auto& [session, tag, buffer, length] = message;
  Peer* peer = context.peers[destination];
  if (!can_send_fast(peer, session, length) || CANELE_BUGGIFY(long_way)) [[unlikely]]
    return false;
  if (length >= peer->rail->inline_limit) [[unlikely]]
    return send_reserved(context, *peer, session, tag, buffer, length);
  const auto head = wire::words_of({tag, peer->next_out, static_cast<std::uint16_t>(session.wire), wire::Type::eager,
                                    static_cast<std::uint8_t>(length)});
  Rail& rail = *peer->rail;
  drivers::Driver& driver = *rail.instance->driver;
  if (driver.send_inline(destination, head.data(), sizeof head, buffer, length) != drivers::Status::ok) [[unlikely]] {
    CANELE_COVER(inline_send_found_full);
    transition(rail, Transmit::full);
    return false;
  }
  CANELE_COVER(sent_fast);
  account_send(context, *peer, driver, message);
  return true;
}

/// Returns whether a message of `length` bytes may leave before the peer is flushed. It may only if no other message of
/// any kind waits for that peer.
inline bool can_send_fast(const Peer* peer, const Session& session, std::size_t length) {
  if (peer == nullptr || peer->state != Peer::State::up) return false;
  const Rail& rail = *peer->rail;
  // A memory rail is flushed until its backlog is empty or the rail is full. So an idle rail of a peer that is not
  // backlogged has nothing queued.
  return rail.transmit == Transmit::idle && !peer->backlogged &&
         peer->names.is_announced(session.wire, session.epoch) && wire::credit_cost_of_eager(length) <= peer->credit;
}

/// Accounts for a message that was sent on the peer's preferred rail, whose driver is `driver`. Consumes credit, takes
/// the envelope number, counts, and notes the doorbell if that has to be rung.
[[gnu::always_inline]] static inline void account_send(Context& context, Peer& peer, drivers::Driver& driver,
                                                       const Outgoing& message) {
  peer.credit -= wire::credit_cost_of_eager(message.length);
  peer.recent.note(peer.next_out++, message.session.wire, message.tag);
  link::count_message(context, peer, message.length, Counter::eager_sent);
  peer.counters.add(Counter::packets_sent);
  if (driver.wants_wake(peer.rank)) [[unlikely]]
    link::ring(context, *peer.rail);
}

}  // namespace canele::comm::send_path
