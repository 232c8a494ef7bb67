// SPDX-License-Identifier: BSD-3-Clause
//
// Link: what the ofi driver knows of one peer.
//
// Who: the ofi driver. Threads: one at a time.
// Surprise: a completion queue may show messages in another order than they were sent, and a packet may be refused for
//      now (Take::later). Both end in `held`, which the window bounds: a sender has at most `window` messages that
//      its receiver has not done with.
//
//   sender    acked ──────── next_out            at most `window` apart; what has room goes out
//                │              │
//   receiver  … done │ next_in │ held, held, –, held │ …     held[number % window]; – has not come yet
//                    └ told: the last number that the sender was told
//
// Rejected: trusting the provider's own flow control. tcp;ofi_rxm, shm and udp;ofi_rxd all keep unexpected messages
//     in memory without a limit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/knock.hpp"
#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {

inline constexpr std::uint16_t window = 64;              ///< messages; a power of two, so that numbers may wrap around
inline constexpr std::uint16_t credit_due = window / 4;  ///< so many done with are worth a message of their own

struct Held {
  bool here = false;
  Kind kind = Kind::packet;
  std::vector<std::byte> bytes;
};

struct Link {
  enum class State : std::uint8_t {
    unknown,
    greeting,   ///< we have sent a Hello
    answering,  ///< we have answered one with a Challenge; the first message with the right key makes it `up`
    up,
    failing,  ///< failed() is due, once no copy is in flight
    failed
  };

  explicit Link(Rank peer) : rank(peer) {}
  bool is_over() const { return state >= State::failing; }
  std::uint16_t unacknowledged() const { return static_cast<std::uint16_t>(next_out - acked); }
  bool has_credit() const { return unacknowledged() < window; }

  const Rank rank;
  State state = State::unknown;
  bool owes_ready = false;   ///< is in the driver's list of those
  bool owes_credit = false;  ///< likewise
  bool is_stuck = false;     ///< likewise: `waiting` is not empty
  bool is_stalled = false;   ///< likewise: the next message is held, and was refused for now
  bool is_greeting = false;  ///< likewise: `greeting` has found no buffer yet
  bool confirm_due = false;  ///< the Challenge has not been answered yet
  bool wants_copy = false;   ///< ready() is owed for a remote_copy() as well
  bool is_doubted = false;   ///< likewise: nothing is heard of it although something was sent
  bool is_doomed = false;    ///< likewise: its process is gone, and what it has sent may still arrive
  bool ending = false;       ///< a bye has come
  bool lost = false;         ///< for failed()
  bool silent = false;       ///< the engine knows already: no failed()
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t key_out = 0, key_in = 0;
  std::uint64_t incarnation = 0;  ///< of the peer, as its address says
  std::uint16_t next_out = 0, acked = 0;
  std::uint16_t next_in = 0, told = 0, end_at = 0;
  std::uint16_t held_count = 0;
  std::uint16_t port = 0;        ///< for a lifeline, 0: none
  std::uint16_t doubted_at = 0;  ///< `acked` when the doubt began
  std::uint64_t doubted_since_ns = 0, patience_ns = 0;
  std::uint16_t doomed_at = 0;  ///< `next_in` when its last message came
  std::uint64_t doomed_since_ns = 0;
  Nonce nonce = {};                 ///< of the Hello, sent or answered
  std::vector<std::byte> name;      ///< its endpoint's
  std::vector<std::byte> hello;     ///< that we sent
  std::vector<std::byte> greeting;  ///< Hello or Challenge, to be sent
  std::unique_ptr<std::array<Held, window>> held;
  SendBuffer* first_waiting = nullptr;  ///< not taken by the provider yet, in order
  SendBuffer* last_waiting = nullptr;
  std::unique_ptr<Knock> knock;
  std::string why;  ///< for failed()
};

}  // namespace canele::drivers::ofi
