// SPDX-License-Identifier: BSD-3-Clause
//
// Link: the ofi driver's state of one peer.
//
// Used by the ofi driver, by one thread at a time.
//
//   sender    acked ──────── next_out            at most `unacked_limit` apart; what has room goes out
//                │              │
//   receiver  … done │ next_in │ a, b, –, d │ …     deferred[number % unacked_limit]; – has not come yet
//                    └ told: the last number that the sender was told
//
// A completion queue may show messages in another order than they were sent, and a packet may be deferred
// (Take::retry). Both cases end in `deferred`, which the limit bounds: a sender has at most `unacked_limit` messages
// that its receiver has not processed.
//
// Rejected: trusting the provider's own flow control. tcp;ofi_rxm, shm and udp;ofi_rxd all keep unexpected messages in
// memory without a limit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/liveness_probe.hpp"
#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {

inline constexpr std::uint16_t unacked_limit = 64;  ///< messages; a power of two, so that numbers may wrap around
inline constexpr std::uint16_t credit_due =
    unacked_limit / 4;  ///< so many processed messages are worth a credit message

struct DeferredMessage {
  bool here = false;
  Kind kind = Kind::packet;
  std::vector<std::byte> bytes;
};

struct Link {
  enum class State : std::uint8_t {
    unknown,
    hello_sent,  ///< this end has sent a Hello
    answering,   ///< this end has answered a Hello with a Challenge; the first message with the right key makes it `up`
    up,
    failing,  ///< failed() is due, once no copy is in flight
    failed
  };

  explicit Link(Rank peer) : rank(peer) {}
  bool is_closed() const { return state >= State::failing; }
  std::uint16_t unacknowledged() const { return static_cast<std::uint16_t>(next_out - acked); }
  bool has_credit() const { return unacknowledged() < unacked_limit; }

  const Rank rank;
  State state = State::unknown;
  bool owes_ready = false;      ///< in the driver's list owing_.
  bool owes_credit = false;     ///< in crediting_.
  bool is_stuck = false;        ///< in stuck_: `waiting` is not empty.
  bool is_stalled = false;      ///< in stalled_: the engine has deferred the next message.
  bool is_handshaking = false;  ///< in handshaking_: `handshake` has found no buffer yet.
  bool confirm_due = false;     ///< the Challenge has not been answered yet.
  bool wants_copy = false;      ///< ready() is owed for an rma() as well.
  bool is_suspected = false;    ///< in suspected_: no answer arrives although something was sent.
  bool is_doomed = false;       ///< in doomed_: its process is gone, and what it has sent may still arrive.
  bool ending = false;          ///< a bye has arrived.
  bool lost = false;            ///< for failed().
  bool silent = false;          ///< the engine already knows: no failed().
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t key_out = 0, key_in = 0;
  std::uint64_t incarnation = 0;  ///< of the peer, as its address says
  std::uint16_t next_out = 0, acked = 0;
  std::uint16_t next_in = 0, told = 0, end_at = 0;
  std::uint16_t deferred_count = 0;
  std::uint16_t port = 0;          ///< for keepalive, 0: none
  std::uint16_t suspected_at = 0;  ///< `acked` when the suspicion began
  std::uint64_t suspected_since_ns = 0, patience_ns = 0;
  std::uint16_t doomed_at = 0;  ///< `next_in` when its last message arrived
  std::uint64_t doomed_since_ns = 0;
  Nonce nonce = {};                  ///< of the Hello, sent or answered
  std::vector<std::byte> name;       ///< of the peer's endpoint
  std::vector<std::byte> hello;      ///< the Hello that this end sent
  std::vector<std::byte> handshake;  ///< Hello or Challenge, to be sent
  std::unique_ptr<std::array<DeferredMessage, unacked_limit>> deferred;
  SendBuffer* first_waiting = nullptr;  ///< not taken by the provider yet, in order
  SendBuffer* last_waiting = nullptr;
  std::unique_ptr<LivenessProbe> probe;
  std::string why;  ///< for failed()
};

}  // namespace canele::drivers::ofi
