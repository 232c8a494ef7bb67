// SPDX-License-Identifier: BSD-3-Clause
//
// Peer: the state that the shm driver keeps for a connected rank. Connection: a socket during connection set-up.
//
// Used by the shm driver. The engine serialises access, except to the members marked "any thread".
//
//   peers_[rank] ──▶ Peer ──▶ RxRing ──▶ channel_in   (own memfd: this process reads)
//                     │  └──▶ TxRing ─▶ channel_out  (the peer's memfd: this process writes)
//                     └─ socket, process: in the driver's epoll, they report the peer's end; the socket is the
//                     doorbell, too
//
// A Peer and its mappings live until the driver closes, also after failure. Other threads may be in wake(), in
// rma(), or at the shared lines.
#pragma once

#include <atomic>
#include <string>

#include "drivers/net/handshake.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/memory.hpp"
#include "drivers/shm/ring.hpp"

namespace canele::drivers::shm {

/// A short message that arrives touches only the first cache line of a Peer. A short message that is sent touches that
/// line and the first line of the TxRing.
struct alignas(line_size) Peer {
  enum class State : std::uint8_t {
    connecting,
    up,
    ending,  ///< the peer has died or left: what it sent before is still to be delivered
    failed
  };

  explicit Peer(Rank its_rank) : rank(its_rank) {}

  const Rank rank;
  State state = State::connecting;
  bool open = false;       ///< sends are allowed: up or ending.
  bool starved = false;    ///< in the driver's list of peers that are owed ready().
  bool wake_due = false;   ///< see Driver::wants_wake.
  std::uint32_t rung = 0;  ///< the sleep from which the peer was last woken.
  std::size_t wanted = 0;  ///< bytes of the data ring that did not fit; 0: a line.
  const SleepPage* sleep_page = nullptr;
  RxRing rx;
  alignas(line_size) TxRing tx;

  // Any thread: set before the flag or descriptor is published, then constant.
  std::atomic<int> doorbell{-1};                   ///< the peer's socket
  std::atomic<bool> readable{false};               ///< rma() can work
  std::atomic<const std::byte*> segment{nullptr};  ///< the peer's SleepPage and the segment behind it
  RemoteProcess process;
  mutable std::atomic<std::uint64_t> proven_ns{0};  ///< when the nonce of `process` was last read; 0: never

  RxCursor cursor;  ///< ahead of `rx`, where the engine looks ahead

  // Set-up and end.
  bool reads_us = false;  ///< the peer can read this process's memory
  bool was_up = false;
  bool told_up = false, told_failed = false;
  bool lost = false;
  bool quiet = false;   ///< the engine rejected the peer and wants no further callback
  std::string reason;   ///< failed: the reason
  AddressForm address;  ///< where this end's own attempt connects to
  int attempts = 0;
  std::uint32_t attempt = 0;   ///< the connection that this end began, 0: none.
  std::uint32_t taken = 0;     ///< the connection that became, or is to become, this peer.
  std::uint32_t deferred = 0;  ///< the inbound connection that waits for the outcome of this end's attempt.
  Mapping channel_in, channel_out, sleep_mapping;
  net::UniqueFd socket, process_end;
};

struct Connection {
  enum class Phase : std::uint8_t {
    waiting,  ///< no socket yet: the peer's backlog is full
    handshake,
    deferred,  ///< identified, unanswered
    exchange   ///< exchanging descriptors
  };

  Connection(std::uint32_t its_id, net::Handshake its_handshake) : id(its_id), handshake(std::move(its_handshake)) {}

  const std::uint32_t id;
  Phase phase = Phase::waiting;
  bool watches_write = false;
  bool fds_sent = false;  ///< this end's descriptors are sent
  net::UniqueFd socket;
  net::Handshake handshake;
  bool pending = false;     ///< inbound, not authenticated yet: behind the limiter.
  Peer* peer = nullptr;     ///< known when this end began it, or when it is taken or deferred.
  std::uint64_t since = 0;  ///< when an inbound one came in, in nanoseconds.
  pid_t pid = 0;
  RemoteProcess process;
  bool can_read = false;
  bool strict = true;
  net::UniqueFd memfd;  ///< of channel_in
  Mapping channel_in;
};

}  // namespace canele::drivers::shm
