// SPDX-License-Identifier: BSD-3-Clause
//
// Peer: another rank, once this rank has communicated with it. Rail: one driver to that peer. Packet: data on its way
// out.
//
// Called under the engine's lock, with one exception. A Packet that was handed to a system-call driver (states `staged`
// and `sending`) belongs to the thread that serves that driver.
//
// A peer that this rank never communicates with costs one pointer.
//
//   Engine.peers[rank] ──▶ Peer ──▶ Strategy (its backlog)
//                            ├──▶ rails[] ──▶ Rail ──▶ DriverInstance ──▶ Driver      rail: the one preferred now
//                            │                 └──▶ Packet (at most one on its way)
//                            ├──▶ RailGroup (only with several rails: what is not acknowledged yet)
//                            └──▶ names of sessions, both ways
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/observe/counters.hpp"
#include "comm/observe/hang_watch.hpp"
#include "comm/state/credit.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/state/rail_group.hpp"
#include "comm/state/rail_pace.hpp"
#include "comm/state/rail_states.hpp"
#include "comm/state/request.hpp"
#include "comm/state/rtr_table.hpp"
#include "comm/state/session_names.hpp"
#include "comm/wire/handle.hpp"
#include "drivers/driver.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

class Context;
class Session;
struct DriverInstance;
struct Peer;

/// An RTS in a packet whose memory the driver registers only when it gets the packet, because registering may take a
/// system call.
struct DeferredRegistration {
  static constexpr int most_pieces = 8;
  Request* request;
  std::size_t rts_at, rkey_at;  ///< in Packet::staging
  iovec pieces[most_pieces];
  int count;
  std::uint64_t handle = 0;
  bool done = false;
};

/// One packet, from its plan until its memory is free again.
struct Packet {
  static constexpr int max_pieces = 2 * strategies::Plan::max_items + 1;

  strategies::Plan plan;           ///< its items; those of finished messages are removed as they complete
  std::vector<std::byte> staging;  ///< headers and copied payloads (system-call drivers)
  iovec pieces[max_pieces];
  int piece_count = 0;
  std::size_t size = 0;
  bool bulk = false;
  Handle transfer_id = Handle::none;
  std::uint64_t bulk_offset = 0;
  std::vector<DeferredRegistration> late;

  /// Returns whether it carries bulk data of that send, whose memory it reads.
  bool holds(const Request& request) const { return bulk && plan.count == 1 && plan.items[0] == &request.item; }
};

/// What a driver's token points to.
struct DriverToken {
  bool is_get = false;  ///< a rendezvous::RmaCopy, else a Rail
};

struct alignas(64) Rail : DriverToken {
  static constexpr std::size_t longest_inline = 232;  ///< in bytes, whatever the driver supports
  static constexpr std::size_t longest_fast = 16 * 1024;
  Peer* peer = nullptr;
  DriverInstance* instance = nullptr;
  Transmit transmit = Transmit::idle;              ///< changed by transition() only, like the connection.
  Connection connection = Connection::connecting;  ///< initially `disconnected` in a peer that is so.
  /// Data on this rail does not leave the host; known once connected. A property of the driver's path, in every state.
  bool local = false;
  std::size_t inline_limit = 0;  ///< shorter messages, in bytes, go in one inline send.
  std::size_t fast_limit = 0;    ///< other messages shorter than this go in a packet of their own; 0: no fast path.
  /// In the engine's list of rails that wait for the next progress call. No state, because a rail whose backlog has
  /// grown meanwhile transmits, and stays in the list.
  bool delayed = false;
  std::uint64_t last_packet_ns = 0;        ///< when the last one was sent, for drivers with a gap.
  std::unique_ptr<Packet> packet;          ///< of a system-call driver, or a blocked plan.
  std::shared_ptr<UnackedPacket> unacked;  ///< several rails: what `packet` points into.
  drivers::Address address;                ///< where to connect.
  drivers::SharedLines lines;              ///< for messages: see rendezvous/receiver_initiated.hpp.
  drivers::SharedLines permits;            ///< see state/access_permit.hpp.
  Rail* next_flush = nullptr;
  /// The launcher has reported the peer's death, and the driver has been told. No state, because the rail goes on as
  /// before until the driver reports failed().
  bool failure_reported = false;
  Rail* next_failed = nullptr;
  drivers::Status result = drivers::Status::ok;  ///< of the last hand-over
  RailPace pace;                                 ///< these four where the peer has several rails: see link/pacing.hpp
  std::uint64_t echo_due = 0;                    ///< the probe to answer; 0: none
  bool report_due = false, probe_due = false;
  struct SentOp : Op {
    Rail* rail = nullptr;
  } sent_op;

  bool is_connected() const { return connection == Connection::up || connection == Connection::closing; }
  /// Returns whether the driver owes a ready().
  bool is_full() const {
    return transmit == Transmit::full || transmit == Transmit::blocked || transmit == Transmit::refused;
  }
  /// Returns whether the rail is on its way to the driver's server, or not back yet.
  bool in_flush() const { return transmit == Transmit::staged || transmit == Transmit::connecting; }
};

inline void transition(Rail& rail, Connection to) {
  assert(connection_transitions.allows(rail.connection, to) && "no such transition of a rail's connection");
  rail.connection = to;
}
inline void transition(Rail& rail, Transmit to) {
  assert(transmit_transitions.allows(rail.transmit, to) && "no such transition of what a rail transmits");
  rail.transmit = to;
}

/// State of one peer. With many active peers this state falls out of the nearest cache. So what a short message needs,
/// on any path, is in the first two cache lines.
struct alignas(64) Peer {
  enum class State : std::uint8_t { resolving, connecting, up, left, failed };  // disconnected(): the last two

  int rank = 0;
  State state = State::resolving;
  bool backlogged = false;                    ///< in the engine's list of peers with a backlog.
  bool closing = false;                       ///< the peer leaves, so the end of one of its rails is no loss.
  bool end_told = false;                      ///< the program knows that the peer has ended.
  Rail* rail = nullptr;                       ///< the preferred one of the live rails.
  std::uint32_t next_out = 1, next_in = 1;    ///< envelope numbers.
  std::uint64_t credit = wire::first_credit;  ///< credit that may still be spent; 0 while sends are blocked.
  SessionNames names;
  int error = CANELE_OK;  ///< why the peer failed

  PeerCounters counters;
  ReceiveWindow receive_window;  ///< what the peer may send

  RecentEnvelopes recent;
  std::string reason;
  std::uint64_t incarnation = 0;             ///< of its process, once a driver has reported it
  std::vector<std::unique_ptr<Rail>> rails;  ///< in order of preference; at least one
  std::unique_ptr<RailGroup> rail_group;     ///< see link/sequencing.hpp
  std::unique_ptr<strategies::Strategy> backlog;
  std::uint64_t next_age = 0;
  std::uint64_t queued_bytes = 0;                     ///< in the backlog, as packed
  std::size_t chunks_done = 0;                        ///< bytes done of a packet that comes again after memory ran out.
  std::uint64_t credit_granted = wire::first_credit;  ///< total that the peer has granted.
  std::unique_ptr<BlockedSends> blocked_sends;        ///< made at the first blocked send.
  std::unique_ptr<Asking> asking;                     ///< made when the peer first has a blocked send.
  std::unique_ptr<RtrTable> rtr_table;                ///< made at the first RTR.
  std::unique_ptr<comm::one_sided::PeerAccess> one_sided;  ///< made at the first one-sided operation.
  Blob address;                                            ///< what the peer published.
  std::size_t next_group = 0;                              ///< next driver group to try.
  LastEvent last_event;

  Rail* rail_of(const DriverInstance& instance) const {
    for (const auto& one : rails) {
      if (one->instance == &instance) return one.get();
    }
    return nullptr;
  }
  /// Returns whether a rail may still come up.
  bool connects() const {
    return std::any_of(rails.begin(), rails.end(), [](const auto& one) {
      return one->instance != nullptr && one->connection == Connection::connecting;
    });
  }
  /// Returns whether one of several rails still reads bulk data of that send, which may not end before. Of a peer with
  /// one rail, Request::moved says so.
  bool holds(const Request& request) const {
    return rail_group != nullptr && std::any_of(rails.begin(), rails.end(), [&](const auto& one) {
             return one->packet != nullptr && one->packet->holds(request);
           });
  }
  /// Returns the bytes of that send, of its last grant, that rails have now.
  std::uint64_t bulk_in_flight(const Request& request) const {
    std::uint64_t bytes = 0;
    for (const auto& one : rails) {
      const Packet* const packet = one->packet.get();
      if (packet != nullptr && packet->holds(request) && packet->transfer_id == request.transfer_id)
        bytes += packet->size;
    }
    return bytes;
  }
  bool disconnected() const { return state >= State::left; }
  /// Returns whether nothing is queued for the peer and no packet is on its way to a driver.
  bool quiet() const {
    return backlog->empty() &&
           std::all_of(rails.begin(), rails.end(), [](const auto& one) { return one->packet == nullptr; });
  }
};

static_assert(offsetof(Peer, counters) == 64 && offsetof(Peer, receive_window) + offsetof(ReceiveWindow, stored) == 128,
              "what a short message needs is in two lines");

}  // namespace canele::comm
