// SPDX-License-Identifier: BSD-3-Clause
//
// What the psm2 driver keeps for one peer, and for one operation of libpsm2.
//
// Used by the psm2 driver, by one thread at a time.
//
//   sent ─────────────── ▶ │ under way to the peer: at most `unacked_limit` │ ◀──── acknowledged
//   inbox   [ message | message | … ]   arrived, not yet taken by the engine; at most as many as were granted
//
// `unacked_limit` keeps libpsm2 from blocking. Its queue in shared memory has 1,024 slots (256 with data) for all
// senders of a process together. psm2_mq_isend() spins while the queue is full: for ever if the receiver is dead. So
// each sender may have only a limited number of messages there, and the receiver says in every tag how many it has
// taken.
//
// Rejected: to let libpsm2 spin, since it polls meanwhile. A peer that computes would stop this process, a dead one for
// ever.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/psm2/sender_lease_page.hpp"
#include "drivers/psm2/wire.hpp"

namespace canele::drivers::psm2 {

struct Peer;

using Buffer = std::vector<std::byte>;

/// An operation that libpsm2 has not finished. Its address is the context that libpsm2 keeps, so it outlives the peer.
struct Operation {
  Peer* peer = nullptr;  ///< null: the peer has failed, and the result is not reported
  bool sends = false;
  bool finished = false;
  Token token = nullptr;        ///< sends: of the engine; null: no operation of the engine waits.
  Buffer copy;                  ///< sends: the bytes, if the driver owns them. receives: what arrives.
  std::size_t limit_share = 0;  ///< bytes of `copy` that count against the limit for copies.
  std::list<Operation>::iterator self;
};

/// A message that has arrived, in whole or as an offer.
struct Message {
  Kind kind = Kind::packet;
  bool began = false;    ///< handshakes: from the side that began it
  bool offered = false;  ///< libpsm2 has to fetch it from the sender's memory
  std::uint32_t size = 0;
  psm2_mq_req_t request = nullptr;  ///< not yet received
  Operation* receiving = nullptr;   ///< being received, or received
};

/// Bulk data on its way into the engine's memory.
struct IncomingBulk {
  BulkHead head;
  std::vector<iovec> pieces;  ///< where the engine wants the first part of it
  Operation* receiving = nullptr;
  bool direct = false;  ///< straight into the only piece
};

struct Peer {
  enum class State : std::uint8_t {
    shaking,  ///< the handshake is in progress
    up,
    closed  ///< reported, or never known; erased at the end of poll()
  };
  Rank rank = -1;       ///< -1 until proven, unless this end sought it.
  Rank expects = -1;    ///< the rank that an unauthenticated peer claims to be.
  bool wanted = false;  ///< the engine has asked for it, so its failure is reported.
  State state = State::shaking;
  bool local = false;       ///< through shared memory.
  bool dead = false;        ///< its process is gone; what it had sent still counts.
  bool left = false;        ///< it sent a good-bye.
  bool owes_ready = false;  ///< a send was answered full.
  bool busy = false;        ///< is in the list of peers with an inbox or incoming bulk data.
  psm2_epaddr_t address = nullptr;
  std::int32_t pid = 0;
  net::UniqueFd process;
  SenderLeasePage lease_page;  ///< local: of the senders to this peer
  std::optional<net::Handshake> handshake;
  std::uint64_t since_ns = 0;
  Terms terms;  ///< the terms that the peer sent

  std::uint32_t unacked_limit = 0;           ///< messages that this end may have in flight.
  std::uint32_t granted = 0;                 ///< messages that the peer may have in flight.
  std::uint32_t sent = 0, acknowledged = 0;  ///< messages to the peer; they wrap.
  std::uint32_t taken = 0, told = 0;         ///< messages from the peer; how many of them the peer knows to be taken.
  std::deque<Message> inbox;
  std::optional<BulkHead> head;  ///< its data is the next message
  std::optional<IncomingBulk> incoming;
  std::string fault;  ///< why it has to be failed; reported when the inbox is empty, or at once

  bool has_room() const { return sent - acknowledged < unacked_limit; }
};

}  // namespace canele::drivers::psm2
