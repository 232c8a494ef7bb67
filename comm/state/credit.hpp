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
//   receiver, for one sender, in units of credit (wire::credit_cost_of_...), totals since the connection:
//
//   0 ─────────────── released ──────────── arrived ──────────────── granted
//     matched and gone         kept here (stored)     the sender may still send
//                             └─────────── window: reserved in the pool ──────┘
//
//   sender: see state/blocked_sends.hpp
//
// The packets carry totals, not differences, so a total that arrives twice, or late, does no harm.
// Rejected: rejecting what has arrived (the receiver would have to keep the envelope, or the order is lost).
// Rejected: a limit on eager data alone (the requests to send then use an unlimited amount of memory).
// Rejected: credit per message (a peer with long messages would starve one with short messages).
#pragma once

#include <canele/canele.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "comm/state/blocked_sends.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm {

class Session;
struct Peer;
struct Request;

/// What one peer may send to this rank.
struct ReceiveWindow {
  static constexpr std::uint64_t least_grant = 4096;

  std::uint64_t arrived = 0;
  std::uint64_t next_check = 0;  ///< `arrived` beyond it: a grant is due, or the peer has exceeded its credit
  std::uint64_t stored = 0, granted = wire::first_credit;
  std::uint64_t target = 0;  ///< of the window, at least CreditPool::first_target; doubles while the sender is blocked.
  std::uint64_t reserved = wire::first_credit;  ///< what the pool counts for this peer: at least size().
  bool sender_blocked = false;                  ///< the sender has reported that it has blocked messages.
  bool in_queue = false;                        ///< waits for the pool.

  std::uint32_t batch = 0;
  std::uint64_t seen = 0, taken = 0;  ///< bit masks over the envelopes of the batch

  std::uint64_t size() const { return granted - arrived + stored; }
  /// Sets when to check the window again. That is when half of the target is used up and has not come back. For a
  /// blocked sender it is when it can send no more.
  void set_next_check() {
    if (in_queue) [[unlikely]] {
      next_check = granted;  // there is nothing to grant
    } else if (sender_blocked) [[unlikely]] {
      next_check =
          granted - std::min(granted, wire::credit_cost_of_rts(CANELE_HEADER_MAX));  // the most expensive envelope
    } else {
      const std::uint64_t reached = granted + stored;
      next_check = std::min(granted, reached - std::min(reached, target / 2));
    }
  }
};

/// A posted receive, or a probe that has found nothing, while a sender has blocked messages.
struct Wanted {
  std::uint64_t tag, mask;
  std::uint64_t solicit_id;  ///< later than that of the receive, and not later than that of the next one
  Session* session;          ///< local; valid while it has `number`
  std::uint32_t number;
};

/// What is solicited from one blocked sender. Made when the sender is first blocked.
struct Asking {
  static constexpr std::uint64_t most_out = 64;        ///< solicitations sent to the sender and not answered.
  static constexpr std::size_t most_waiting = 65'536;  ///< receives not asked for; beyond this, all is asked for.
  static constexpr std::size_t most_probes = 1024;     ///< beyond this, a probe must be repeated by its caller

  std::deque<Wanted> receives;       ///< not asked for yet, oldest first.
  std::deque<Wanted> probes;         ///< each pattern once: first those without an answer, then those not asked yet.
  std::size_t probes_out = 0;        ///< number of probes, from the front, that have no answer.
  std::uint64_t out_for_probes = 0;  ///< a bit for each solicitation without an answer, the oldest lowest.
  bool all = false;                  ///< older receives wait, too: everything is to be asked for.
  std::uint32_t episode = 0;         ///< the sender's number for this shortage of credit.
  std::uint64_t asked = 0, answered = 0;  ///< solicitations, in this episode.
  std::uint64_t solicit_id = 1;           ///< older receives have been asked for.
  std::size_t may_store = 0;              ///< messages that may be stored for probes.
};

/// Memory for unexpected messages of one engine: stored + granted never exceed `limit`.
struct CreditPool {
  std::uint64_t limit = 0, per_peer = 0;
  std::uint64_t first_target = 0;      ///< of every peer's window.
  std::uint64_t reserved = 0;          ///< includes what each rank may send before it gets any grant.
  std::vector<Peer*> windows_due;      ///< peers whose window is due for a check.
  std::vector<Peer*> queue;            ///< peers that want more than there was.
  std::vector<Peer*> blocked_senders;  ///< peers that have blocked messages.
  bool just_blocked = false;           ///< a message was blocked by the thread that has the lock.

  std::uint64_t room() const { return reserved < limit ? limit - reserved : 0; }
};

}  // namespace canele::comm
