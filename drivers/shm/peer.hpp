// SPDX-License-Identifier: BSD-3-Clause
//
// Peer: what the shm driver keeps for a rank that it talks to. Connection: a socket on its way to being a peer.
//
// Who: the shm driver. Threads: the engine's serialisation, except the members marked "any thread".
// Surprise: a Peer and its mappings live until the driver closes, also after failure: other threads may be in wake(),
//      in remote_copy(), or at the shared lines.
//
//   peers_[rank] ──▶ Peer ──▶ Inbox ──▶ area_in   (own memfd: we read)
//                     │  └──▶ Outbox ─▶ area_out  (the peer's memfd: we write)
//                     └─ socket, process: in the driver's epoll, they tell the end; the socket is the doorbell, too
#pragma once

#include <atomic>
#include <string>

#include "drivers/net/handshake.hpp"
#include "drivers/shm/introduce.hpp"
#include "drivers/shm/memory.hpp"
#include "drivers/shm/ring.hpp"

namespace canele::drivers::shm {

/// What a short message needs is in the first line for one that comes; in that and the Outbox's first for one that
/// goes.
struct alignas(line_size) Peer {
  enum class State : std::uint8_t {
    connecting,
    up,
    ending,  ///< it has died or left: what it sent before is still to be delivered
    failed
  };

  explicit Peer(Rank its_rank) : rank(its_rank) {}

  const Rank rank;
  State state = State::connecting;
  bool open = false;       ///< sends are allowed: up or ending
  bool starved = false;    ///< in the driver's list of those that are owed ready()
  bool wake_due = false;   ///< see Driver::wants_wake
  std::uint32_t rung = 0;  ///< the sleep that it was last woken from
  std::size_t wanted = 0;  ///< bytes of the data ring that did not fit; 0: a line
  const ParkPage* park = nullptr;
  Inbox in;
  alignas(line_size) Outbox out;

  // Any thread: set before the flag or descriptor is published, then constant.
  std::atomic<int> doorbell{-1};                 ///< its socket
  std::atomic<bool> readable{false};             ///< remote_copy() can work
  std::atomic<const std::byte*> shelf{nullptr};  ///< its ParkPage and what lies behind
  RemoteProcess process;

  Scout scout;  ///< ahead of `in`, where the engine looks ahead

  // Set-up and end.
  bool reads_us = false;  ///< it can pull from our memory
  bool was_up = false;
  bool told_up = false, told_failed = false;
  bool lost = false;
  bool quiet = false;   ///< the engine refused it and wants to hear no more
  std::string reason;   ///< failed: why
  AddressForm address;  ///< where our own attempt goes
  int attempts = 0;
  std::uint32_t attempt = 0;  ///< connection that we began, 0: none
  std::uint32_t taken = 0;    ///< connection that became, or is to become, this peer
  std::uint32_t held = 0;     ///< inbound connection that waits for the outcome of our attempt
  Mapping area_in, area_out, park_page;
  net::UniqueFd socket, process_end;
};

struct Connection {
  enum class Phase : std::uint8_t {
    waiting,  ///< no socket yet: the peer's backlog is full
    handshake,
    held,     ///< identified, unanswered
    exchange  ///< of introductions
  };

  Connection(std::uint32_t its_id, net::Handshake its_handshake) : id(its_id), handshake(std::move(its_handshake)) {}

  const std::uint32_t id;
  Phase phase = Phase::waiting;
  bool watches_write = false;
  bool introduced = false;  ///< our introduction is sent
  net::UniqueFd socket;
  net::Handshake handshake;
  bool guest = false;       ///< inbound, has proven nothing: behind the door
  Peer* peer = nullptr;     ///< known when we began it, or when it is taken or held
  std::uint64_t since = 0;  ///< when an inbound one came in
  pid_t pid = 0;
  RemoteProcess process;
  bool can_read = false;
  bool strict = true;
  net::UniqueFd memfd;  ///< of area_in
  Mapping area_in;
};

}  // namespace canele::drivers::shm
