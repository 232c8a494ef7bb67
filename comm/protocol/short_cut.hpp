// SPDX-License-Identifier: BSD-3-Clause
//
// The short cut of an eager message: steps 1 to 6 of send_path.cpp at once, where nothing stands in its way.
//
// Who: api/ and collectives/direct.cpp, with the engine's lock.
// Threads: under the engine's lock.
// Surprise: it is a header because half of what it did as a function was to save and restore its caller's registers.
#pragma once

#include "comm/core/engine.hpp"
#include "comm/packet/wire.hpp"
#include "comm/protocol/send_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::send_path {

/// May a message of `length` bytes overtake the pump? Only if no other message of any kind waits for it.
inline bool way_is_clear(const Peer* peer, const Session& session, std::size_t length) {
  if (peer == nullptr || peer->state != Peer::State::up) return false;
  const Rail& rail = *peer->rail;
  // A memory rail is pumped until its backlog is empty or it is full, so an idle one that is not to be pumped has none.
  return rail.state == Rail::State::idle && !rail.full && !peer->dirty &&
         peer->names.is_told(session.wire, session.epoch) && wire::charge_of_eager(length) <= peer->credit;
}

/// It has left by the peer's preferred rail, which is this driver's, and is paid for.
[[gnu::always_inline]] static inline void note_departure(Engine& engine, Peer& peer, drivers::Driver& driver,
                                                         const Session& session, std::uint64_t tag,
                                                         std::size_t length) {
  peer.credit -= wire::charge_of_eager(length);
  peer.recent.note(peer.next_out++, session.wire, tag);
  count(engine, peer, length, Counter::eager_sent);
  peer.counters.add(Counter::packets_sent);
  if (driver.wants_wake(peer.rank)) [[unlikely]]
    ring(engine, *peer.rail);
}

/// The same as below for what is too long for a line: it is written into the driver's buffer. Out of line, as its copy
/// costs more than a call.
[[gnu::noinline]] bool leave_in_packet(Engine& engine, Peer& peer, const Session& session, std::uint64_t tag,
                                       const void* buffer, std::size_t length);

/// A message to an idle memory driver with nothing queued before it: the packet that any strategy would plan now has
/// this one message, so it is written straight into the driver's line. False: it takes the long way.
[[gnu::always_inline]] static inline bool leave_at_once(Engine& engine, const Session& session, int destination,
                                                        std::uint64_t tag, const void* buffer, std::size_t length) {
  Peer* peer = engine.peers[destination];
  if (!way_is_clear(peer, session, length) || CANELE_BUGGIFY(long_way)) [[unlikely]]
    return false;
  if (length >= peer->rail->inline_below) [[unlikely]]
    return leave_in_packet(engine, *peer, session, tag, buffer, length);
  const auto head = wire::words_of({tag, peer->next_out, static_cast<std::uint16_t>(session.wire), wire::Type::eager,
                                    static_cast<std::uint8_t>(length)});
  Rail& rail = *peer->rail;
  drivers::Driver& driver = *rail.slot->driver;
  if (driver.send_inline(destination, head.data(), sizeof head, buffer, length) != drivers::Status::ok) [[unlikely]] {
    CANELE_MARK(inline_send_found_full);
    rail.full = true;
    return false;
  }
  CANELE_MARK(left_at_once);
  note_departure(engine, *peer, driver, session, tag, length);
  return true;
}

}  // namespace canele::comm::send_path
