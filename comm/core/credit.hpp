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
//   sender:   [ first ⇄ … ⇄ cursor ⇄ … ⇄ last ]   withheld sends, oldest first
//               offered before  │  not offered since the last RESUME
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
#include <vector>

#include "comm/packet/wire.hpp"

namespace canele::comm {

struct Peer;
struct Request;

/// Sends to one peer that wait for credit. Made when the first one has to.
struct Withheld {
  static constexpr int most_offered = 64;  ///< in one batch: a bit each in the answer

  Request* first = nullptr;
  Request* last = nullptr;
  std::uint64_t count = 0;
  std::uint64_t credit = 0;    ///< what is left, while Peer::credit is 0
  std::uint64_t since_ns = 0;  ///< when it was empty last

  Request* cursor = nullptr;      ///< the next one to offer; nullptr: all were, since the last RESUME
  std::uint64_t stamp = 0;        ///< of that RESUME; 0: there was none
  std::uint64_t batch_stamp = 0;  ///< of the one that the batch answers
  bool batch_out = false;         ///< offered and not answered: until then nothing leaves, so that nothing leaves twice
  bool batch_last = false;        ///< it reaches the end of the list
  std::uint32_t batch_number = 0;
  int batch_size = 0;
  Request* batch[most_offered] = {};  ///< nullptr: taken before the answer came
};

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

  bool resume_out = false, resume_due = false;  ///< the sender walks through its list; and shall do so once more
  std::uint64_t resume_stamp = 0;
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

/// A probe that found nothing while some sender withheld messages: what it asks for must not be withheld.
struct MissedProbe {
  std::uint32_t session = 0;
  std::int32_t source = 0;
  std::uint64_t tag = 0, mask = 0;
  std::uint64_t stamp = 0;  ///< as those of receives
};

/// Memory for unexpected messages of one engine: stored + granted never exceed `limit`.
struct CreditPool {
  static constexpr std::size_t most_missed = 8;

  std::uint64_t limit = 0, per_peer = 0;
  std::uint64_t first_target = 0;  ///< of every peer's window
  std::uint64_t lent = 0;          ///< from the beginning, what each rank may send before it hears anything
  std::vector<Peer*> looks;        ///< peers whose window is due for a look
  std::vector<Peer*> queue;        ///< peers that want more than there was
  std::vector<Peer*> starving;     ///< peers that withhold messages
  std::vector<MissedProbe> missed;
  bool just_withheld = false;  ///< by the thread that has the lock

  std::uint64_t room() const { return lent < limit ? limit - lent : 0; }
};

}  // namespace canele::comm
