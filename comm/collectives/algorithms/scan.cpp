// SPDX-License-Identifier: BSD-3-Clause
//
// Scan and exscan. All data moves to higher ranks, so a low rank has fewer rounds and completes early.
//
//   recursive doubling      round k: this rank sends its sum, over 2^k ranks up to itself, to rank + 2^k
//       0: 0   1: 1    2: 2    3: 3          ─▶   0: 0   1: 01   2: 12   3: 23        ─▶   0: 0  1: 01  2: 012  3: 0123
//   chain                   sums pass from rank to rank, segment by segment
//
// Hillis, Steele: Data parallel algorithms, 1986.
#include <algorithm>
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"

namespace canele::comm::collectives {
namespace {

struct Neighbours {
  int to, from;  // -1: none
  bool last;     // no message arrives after this round
};

Neighbours at_distance(const Call& call, std::int64_t away) {
  const std::int64_t to = call.rank + away, from = call.rank - away;
  return {to < call.size ? static_cast<int>(to) : -1, from < 0 ? -1 : static_cast<int>(from), from < away};
}

/// Returns the number of rounds in which a message arrives.
std::uint64_t receives_of(const Call& call) {
  std::uint64_t receives = 0;
  for (std::int64_t away = 1; away <= call.rank; away *= 2) ++receives;
  return receives;
}

void scan_inclusive(Plan& plan) {
  const Call& call = plan.call();
  const Range output = plan.output(0, call.length);
  Range sum = plan.own(0, call.length);
  if (call.rank == 0) plan.copy(sum, output);
  Pool pool(plan, call.length, receives_of(call), 3);
  std::uint64_t round = 0;
  for (std::int64_t away = 1; away < call.size; away *= 2, ++round) {
    const Neighbours peers = at_distance(call, away);
    if (peers.to >= 0) plan.send(peers.to, slot_of(0, round), sum);
    if (peers.from < 0) continue;
    const bool in_place = peers.last && sum.space == Space::output;
    const Range in = peers.last && !in_place ? output : pool.next(call.length);
    plan.receive(peers.from, slot_of(0, round), in);
    if (in_place) {
      plan.combine(in, sum);
    } else {
      plan.append(sum, in);
      sum = in;
    }
  }
}

/// The sum that is sent on includes this rank's operand; the sum that is kept does not.
void scan_exclusive(Plan& plan) {
  const Call& call = plan.call();
  Range own = plan.own(0, call.length), sum;
  // In place, the last receive overwrites the operand. If there is a rank two positions on, the operand is needed after
  // the first round, so it is copied.
  if (call.in_place && call.rank > 0 && at_distance(call, 2).to >= 0) {
    own = plan.scratch(call.length);
    plan.copy(plan.own(0, call.length), own);
  }
  Range passed_on = own;
  Pool sums(plan, call.length, receives_of(call)), sent(plan, call.length, receives_of(call));
  std::uint64_t round = 0;
  for (std::int64_t away = 1; away < call.size; away *= 2, ++round) {
    const Neighbours peers = at_distance(call, away);
    if (peers.to >= 0) plan.send(peers.to, slot_of(0, round), passed_on);
    if (peers.from < 0) continue;
    const Range in = peers.last ? plan.output(0, call.length) : sums.next(call.length);
    plan.receive(peers.from, slot_of(0, round), in);
    if (round > 0) plan.append(sum, in);
    sum = in;
    if (at_distance(call, 2 * away).to < 0) continue;
    passed_on = sent.next(call.length);
    plan.copy(own, passed_on);
    plan.combine(sum, passed_on);
  }
}

void chain_inclusive(Plan& plan, const Cut& cut) {
  const Call& call = plan.call();
  const int before = call.rank - 1, behind = call.rank + 1 < call.size ? call.rank + 1 : -1;
  const Range own = plan.own(0, call.length), output = plan.output(0, call.length);
  if (before < 0) plan.copy(own, output);
  Pool pool(plan, cut.longest(), before >= 0 && call.in_place ? cut.count() : 0);
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    const Range mine = cut.of(own, piece), sum = cut.of(output, piece);
    if (before >= 0 && call.in_place) {
      const Range in = pool.next(mine.length);
      plan.receive(before, slot_of(0, piece), in);
      plan.combine(in, sum);
    } else if (before >= 0) {
      plan.receive(before, slot_of(0, piece), sum);
      plan.append(mine, sum);
    }
    if (behind >= 0) plan.send(behind, slot_of(0, piece), before < 0 ? mine : sum);
  }
}

void chain_exclusive(Plan& plan, const Cut& cut) {
  const Call& call = plan.call();
  const int before = call.rank - 1, behind = call.rank + 1 < call.size ? call.rank + 1 : -1;
  const Range own = plan.own(0, call.length), output = plan.output(0, call.length);
  Pool sums(plan, cut.longest(), before >= 0 && behind >= 0 ? cut.count() : 0);
  Pool waiting(plan, cut.longest(), before >= 0 && call.in_place ? cut.count() : 0);
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    Range mine = cut.of(own, piece);
    if (before >= 0) {
      const Range place = cut.of(output, piece);
      const Range in = call.in_place ? waiting.next(mine.length) : place;
      plan.receive(before, slot_of(0, piece), in);
      if (behind >= 0) {
        const Range sum = sums.next(mine.length);
        plan.copy(mine, sum);
        plan.combine(in, sum);
        mine = sum;
      }
      plan.copy(in, place);
    }
    if (behind >= 0) plan.send(behind, slot_of(0, piece), mine);
  }
}

}  // namespace

void scan_recursive(Plan& plan, bool exclusive) { exclusive ? scan_exclusive(plan) : scan_inclusive(plan); }

void scan_chain(Plan& plan, const Choice& choice, bool exclusive) {
  const Call& call = plan.call();
  const Cut cut = Cut::segments(call.length, call.element, choice.segment);
  exclusive ? chain_exclusive(plan, cut) : chain_inclusive(plan, cut);
}

}  // namespace canele::comm::collectives
