// SPDX-License-Identifier: BSD-3-Clause
//
// Credit: limits the memory of unexpected messages. It keeps the accounts of one peer, and the pool from which all
// accounts are paid.
//
// Used by protocol/credit_sender (the sender's half) and protocol/credit_receiver (the receiver's half). Part of Peer
// and Engine. Called by the thread that holds the engine's lock.
//
// Credit is charged for every envelope, not only for data: a million requests to send use memory, too. The receiver
// does not reject a message for which there is no credit. The message stays with its sender, in the user's memory.
//
//   receiver, for one sender, in units of charge (wire::charge_of_...), totals since the connection:
//
//   0 ─────────────── released ──────────── arrived ──────────────── granted
//     matched and gone         kept here (stored)     the sender may still send
//                             └──────────── window: lent by the pool ────────┘
//
//   sender: see state/withheld.hpp
//
// The packets carry totals, not differences, so a total that arrives twice, or late, does no harm.
// Rejected: refusing what has arrived (the receiver would have to keep the envelope, or the order is lost).
// Rejected: a limit on eager data alone (the requests to send then use an unlimited amount of memory).
// Rejected: credit per message (a peer with long messages would starve one with short messages).
#pragma once

#include <canele/canele.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "comm/state/withheld.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm {

class Session;
struct Peer;
struct Request;

/// What one peer may send to this rank.
struct Allowance {
  static constexpr std::uint64_t least_grant = 4096;

  std::uint64_t arrived = 0;
  std::uint64_t next_look = 0;  ///< `arrived` beyond it: a grant is due, or the peer has exceeded its credit
  std::uint64_t stored = 0, granted = wire::first_credit;
  std::uint64_t target = 0;  ///< of the window, at least CreditPool::first_target; doubles while the sender starves.
  std::uint64_t lent = wire::first_credit;  ///< what the pool counts for this peer: at least window().
  bool starving = false;                    ///< the sender has reported that it withholds messages.
  bool in_queue = false;                    ///< waits for the pool.

  std::uint32_t batch = 0;
  std::uint64_t seen = 0, taken = 0;  ///< bit masks over the offers of the batch

  std::uint64_t window() const { return granted - arrived + stored; }
  /// Sets when to check the window again. That is when half of the target is used up and has not come back. For a
  /// starving sender it is when it can send no more.
  void set_next_look() {
    if (in_queue) [[unlikely]] {
      next_look = granted;  // there is nothing to grant
    } else if (starving) [[unlikely]] {
      next_look = granted - std::min(granted, wire::charge_of_rts(CANELE_HEADER_MAX));  // the most expensive envelope
    } else {
      const std::uint64_t reached = granted + stored;
      next_look = std::min(granted, reached - std::min(reached, target / 2));
    }
  }
};

/// A posted receive, or a probe that has found nothing, while a sender withholds messages.
struct Wanted {
  std::uint64_t tag, mask;
  std::uint64_t stamp;  ///< later than that of the receive, and not later than that of the next one
  Session* session;     ///< local; valid while it has `number`
  std::uint32_t number;
};

/// What is solicited from one sender that withholds messages. Made when the sender first does so.
struct Asking {
  static constexpr std::uint64_t most_out = 64;        ///< questions sent to the sender and not answered.
  static constexpr std::size_t most_waiting = 65'536;  ///< receives not asked for; beyond this, all is asked for.
  static constexpr std::size_t most_probes = 1024;     ///< beyond this, a probe must be repeated by its caller

  std::deque<Wanted> receives;       ///< not asked for yet, oldest first.
  std::deque<Wanted> probes;         ///< each pattern once: first those without an answer, then those not asked yet.
  std::size_t probes_out = 0;        ///< number of probes, from the front, that have no answer.
  std::uint64_t out_for_probes = 0;  ///< a bit for each question without an answer, the oldest lowest.
  bool all = false;                  ///< older receives wait, too: everything is to be asked for.
  std::uint32_t episode = 0;         ///< the sender's number for this shortage of credit.
  std::uint64_t asked = 0, answered = 0;  ///< questions, in this episode.
  std::uint64_t stamp = 1;                ///< older receives have been asked for.
  std::size_t may_keep = 0;               ///< messages that may be stored for probes.
};

/// Memory for unexpected messages of one engine: stored + granted never exceed `limit`.
struct CreditPool {
  std::uint64_t limit = 0, per_peer = 0;
  std::uint64_t first_target = 0;  ///< of every peer's window.
  std::uint64_t lent = 0;          ///< includes what each rank may send before it gets any grant.
  std::vector<Peer*> looks;        ///< peers whose window is due for a check.
  std::vector<Peer*> queue;        ///< peers that want more than there was.
  std::vector<Peer*> starving;     ///< peers that withhold messages.
  bool just_withheld = false;      ///< a message was withheld by the thread that has the lock.

  std::uint64_t room() const { return lent < limit ? limit - lent : 0; }
};

}  // namespace canele::comm
