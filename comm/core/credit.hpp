// SPDX-License-Identifier: BSD-3-Clause
//
// Credit: what keeps the memory of messages that nobody has asked for yet under a limit. The accounts of one peer, and
// the pool that all of them are paid from.
//
// Who: protocol/flow_out (the sender's half) and protocol/flow_in (the receiver's half). Part of Peer and Engine.
// Threads: under the engine's lock.
// Surprise: credit is charged for every envelope, not only for data: a million requests to send are memory, too. And a
//     message for which there is none is not refused by the receiver, but stays with its sender, in the user's memory.
//
//   receiver, for one sender, in units of charge (wire::charge_of_...), totals since the connection:
//
//   0 ─────────────── released ──────────── arrived ──────────────── granted
//     matched and gone         kept here (stored)     the sender may still send
//                             └──────────── window: lent by the pool ────────┘
//
//   sender: see core/withheld.hpp
//
// Totals, not differences, travel: one that comes twice, or late, does no harm.
// Rejected: refusing what has arrived (the receiver would have to keep the envelope, or the order is lost); a limit on
//     eager data alone (peers of ours spend 700 MB on requests to send); credit per message (a peer with long ones
//     would starve one with short ones).
#pragma once

#include <canele/canele.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "comm/core/withheld.hpp"
#include "comm/packet/wire.hpp"

namespace canele::comm {

class Session;
struct Peer;
struct Request;

/// What one peer may send to us.
struct Allowance {
  static constexpr std::uint64_t least_grant = 4096;

  std::uint64_t arrived = 0;
  std::uint64_t next_look = 0;  ///< `arrived` beyond it: time to grant, or a lie
  std::uint64_t stored = 0, granted = wire::first_credit;
  std::uint64_t target = 0;  ///< of the window, at least CreditPool::first_target; doubles while the sender starves
  std::uint64_t lent = wire::first_credit;  ///< what the pool counts for this peer: at least window()
  bool starving = false;                    ///< the sender has said that it withholds messages
  bool in_queue = false;                    ///< waits for the pool

  std::uint32_t batch = 0;
  std::uint64_t seen = 0, taken = 0;  ///< offers of the batch, a bit each

  std::uint64_t window() const { return granted - arrived + stored; }
  /// When to look again: half of the target is used up and has not come back; or a starving sender can send no more.
  void set_next_look() {
    if (in_queue) [[unlikely]] {
      next_look = granted;  // there is nothing to grant
    } else if (starving) [[unlikely]] {
      next_look = granted - std::min(granted, wire::charge_of_rts(CANELE_HEADER_MAX));  // the dearest envelope
    } else {
      const std::uint64_t reached = granted + stored;
      next_look = std::min(granted, reached - std::min(reached, target / 2));
    }
  }
};

/// A receive that waits, or a probe that has found nothing, while a sender withholds messages.
struct Wanted {
  std::uint64_t tag, mask;
  std::uint64_t stamp;   ///< later than that of the receive, and not than that of the next
  Session* session;      ///< ours,
  std::uint32_t number;  ///< as long as it has this number
};

/// What one sender that withholds messages is asked for. Made when it first does so.
struct Asking {
  static constexpr std::uint64_t most_out = 64;        ///< questions that the sender has and has not answered
  static constexpr std::size_t most_waiting = 65'536;  ///< of receives, not asked yet; then all is asked for at once
  static constexpr std::size_t most_probes = 1024;     ///< one more has to come again

  std::deque<Wanted> receives;            ///< not asked for yet, oldest first
  std::deque<Wanted> probes;              ///< each pattern once: those that have no answer, then those not asked yet
  std::size_t probes_out = 0;             ///< how many of them, from the front, have no answer
  std::uint64_t out_for_probes = 0;       ///< a bit for each question without an answer, the oldest lowest
  bool all = false;                       ///< older receives wait, too: everything is to be asked for
  std::uint32_t episode = 0;              ///< the sender's number for this time of want
  std::uint64_t asked = 0, answered = 0;  ///< questions, in this episode
  std::uint64_t stamp = 1;                ///< older receives have been asked for
  std::size_t may_keep = 0;               ///< messages, for probes
};

/// Memory for unexpected messages of one engine: stored + granted never exceed `limit`.
struct CreditPool {
  std::uint64_t limit = 0, per_peer = 0;
  std::uint64_t first_target = 0;  ///< of every peer's window
  std::uint64_t lent = 0;          ///< from the beginning, what each rank may send before it hears anything
  std::vector<Peer*> looks;        ///< peers whose window is due for a look
  std::vector<Peer*> queue;        ///< peers that want more than there was
  std::vector<Peer*> starving;     ///< peers that withhold messages
  bool just_withheld = false;      ///< by the thread that has the lock

  std::uint64_t room() const { return lent < limit ? limit - lent : 0; }
};

}  // namespace canele::comm
