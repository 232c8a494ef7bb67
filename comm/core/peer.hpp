// SPDX-License-Identifier: BSD-3-Clause
//
// Peer: another rank, as soon as it is talked to; Rail: one driver towards it; Packet: what is on its way out.
//
// Who: the engine, under its lock, except where a Packet is handed to a driver that makes system calls (state
//     `staged` and `sending`: it then belongs to whoever serves that driver).
// Threads: under the engine's lock, except a Packet that a driver's server holds.
// Surprise: a peer never talked to costs one pointer.
//
//   Engine.peers[rank] ──▶ Peer ──▶ Strategy (its backlog)
//                            ├──▶ rails[] ──▶ Rail ──▶ DriverSlot ──▶ Driver      rail: the one preferred now
//                            │                 └──▶ Packet (at most one on its way)
//                            ├──▶ Bundle (only with several rails: what is not acknowledged yet)
//                            └──▶ names of sessions, both ways
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/core/adverts.hpp"
#include "comm/core/bundle.hpp"
#include "comm/core/credit.hpp"
#include "comm/core/request.hpp"
#include "comm/core/session_names.hpp"
#include "comm/observe/counters.hpp"
#include "comm/observe/hang_watch.hpp"
#include "drivers/driver.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

class Engine;
class Session;
struct DriverSlot;
struct Peer;

/// An RTS in a packet whose memory its driver exposes when it gets the packet: that may take a system call.
struct LateExposure {
  static constexpr int most_pieces = 8;
  Request* request;
  std::size_t rts_at, exposure_at;  ///< in Packet::staging
  iovec pieces[most_pieces];
  int count;
  std::uint64_t handle = 0;
  bool done = false;
};

/// One packet between its plan and the moment its memory is free again.
struct Packet {
  static constexpr int max_pieces = 2 * strategies::Plan::max_items + 1;

  strategies::Plan plan;           ///< what is in it; items of finished messages are taken out as they complete
  std::vector<std::byte> staging;  ///< heads and copied payloads (system-call drivers)
  iovec pieces[max_pieces];
  int piece_count = 0;
  std::size_t size = 0;
  bool bulk = false;
  std::uint64_t bulk_key = 0, bulk_offset = 0;
  std::vector<LateExposure> late;
};

/// What a driver's token points at.
struct InFlight {
  bool pull = false;  ///< a rendezvous::Pull, else a Rail
};

struct alignas(64) Rail : InFlight {
  static constexpr std::size_t longest_inline =
      232;  ///< longer ones are no inline messages, whatever the driver offers
  static constexpr std::size_t longest_at_once = 16 * 1024;
  enum class State : std::uint8_t {
    idle,     ///< takes a packet
    connect,  ///< system-call driver: waits for its server to connect
    held,     ///< memory driver: a plan that found the driver full
    staged,   ///< system-call driver: waits for its server
    sending   ///< the driver has it, its memory is in use
  };
  Peer* peer = nullptr;
  DriverSlot* slot = nullptr;
  State state = State::idle;
  bool up = false;                   ///< connected
  bool dead = false;                 ///< has failed: nothing more comes or goes
  bool local = false;                ///< what goes there does not leave this host; known once connected
  std::size_t inline_below = 0;      ///< shorter messages go in one inline send,
  std::size_t at_once_below = 0;     ///< others that are shorter than this in a packet of their own; 0: no short cut
  bool full = false;                 ///< the driver said full; ready() will come
  bool said_closing = false;         ///< it carries nothing more of ours
  bool lulled = false;               ///< in the engine's list of rails that wait for the next progress call
  std::uint64_t last_packet_ns = 0;  ///< when the last one left, for drivers with a gap
  std::unique_ptr<Packet> packet;    ///< system-call drivers, and held plans
  std::shared_ptr<KeptPacket> kept;  ///< several rails: what `packet` points into
  bool in_flush = false;             ///< on its way to the server of the driver, or not back yet
  drivers::Address address;          ///< where to connect
  drivers::SharedLines lines;        ///< see protocol/advert.hpp
  Rail* next_flush = nullptr;
  bool told_of_death = false;  ///< the launcher has said that the peer died, and the driver is told
  Rail* next_death = nullptr;
  drivers::Status result = drivers::Status::ok;  ///< of the last hand-over
  struct SentOp : Op {
    Rail* rail = nullptr;
  } sent_op;
};

/// Who talks to many in turn finds what he keeps of each in a farther cache: what a short message needs, whichever way
/// it goes, is in the first two lines.
struct alignas(64) Peer {
  enum class State : std::uint8_t { resolving, connecting, up, left, failed };  // the last two: gone

  int rank = 0;
  State state = State::resolving;
  bool dirty = false;                         ///< in the engine's list of peers to pump
  bool closing = false;                       ///< it leaves: that a rail of it ends is no loss
  Rail* rail = nullptr;                       ///< the preferred one of those that live
  std::uint32_t next_out = 1, next_in = 1;    ///< envelope numbers
  std::uint64_t credit = wire::first_credit;  ///< charge that may still be sent; 0 while messages are withheld
  SessionNames names;
  int error = CANELE_OK;  ///< why it failed

  PeerCounters counters;
  Allowance allowance;  ///< what the peer may send

  RecentEnvelopes recent;
  std::string reason;
  std::uint64_t incarnation = 0;             ///< of its process, once a driver has told it
  std::vector<std::unique_ptr<Rail>> rails;  ///< in order of preference; at least one
  std::unique_ptr<Bundle> bundle;            ///< see protocol/bundle.hpp
  std::unique_ptr<strategies::Strategy> backlog;
  std::uint64_t next_age = 0;
  std::uint64_t queued_bytes = 0;                   ///< in the backlog, as packed
  std::size_t chunks_done = 0;                      ///< bytes of a packet that is to come again: there was no memory
  std::uint64_t credit_heard = wire::first_credit;  ///< the total that the peer has granted
  std::unique_ptr<Withheld> withheld;               ///< once a message was
  std::unique_ptr<Asking> asking;                   ///< once the peer has withheld one
  std::unique_ptr<Adverts> adverts;                 ///< once there was one
  Blob address;                                     ///< what it published
  std::size_t next_group = 0;                       ///< of drivers, the next one to try
  LastEvent last_event;

  Rail* rail_of(const DriverSlot& slot) const {
    for (const auto& one : rails) {
      if (one->slot == &slot) return one.get();
    }
    return nullptr;
  }
  /// A rail may still come up.
  bool connects() const {
    return std::any_of(rails.begin(), rails.end(),
                       [](const auto& one) { return one->slot != nullptr && !one->up && !one->dead; });
  }
  bool gone() const { return state >= State::left; }
  /// Nothing is queued for it, and nothing on its way to a driver.
  bool quiet() const {
    return backlog->empty() &&
           std::all_of(rails.begin(), rails.end(), [](const auto& one) { return one->packet == nullptr; });
  }
};

static_assert(offsetof(Peer, counters) == 64 && offsetof(Peer, allowance) + offsetof(Allowance, stored) == 128,
              "what a short message needs is in two lines");

}  // namespace canele::comm
