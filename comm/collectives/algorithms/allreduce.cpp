// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce. All ranks get the same bits: each sum is made of the same operands in the same order, wherever it is
// computed.
//
//    recursive doubling, 4 ranks     0 ◀─▶ 1   2 ◀─▶ 3   then   0 ◀─▶ 2   1 ◀─▶ 3     log2 n rounds, whole vector each
//    halving, doubling               halves, quarters … of the vector, and back       2 log2 n rounds, 2 vectors in all
//    ring                            pieces pass all ranks and are summed, twice      2(n-1) rounds, 2 vectors in all
//    flat                            each rank sends the whole vector to each other rank
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005; ring: Patarasuk,
// Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
#include <algorithm>
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/halving.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

enum AllreducePhase : std::uint32_t { first_phase, doubling_phase, last_phase };

/// The rounds of the cores. The received vector becomes the sum, so that no round waits for the end of its own send.
/// The last receive goes to the output, unless the sum is there already.
void double_sums(Plan& plan, const Fold& fold, Range sum) {
  const Range output = plan.output(0, sum.length);
  const int core = fold.core_of(plan.call().rank);
  Pool pool(plan, sum.length, static_cast<std::uint64_t>(fold.rounds()), 3);
  for (int round = 0; round < fold.rounds(); ++round) {
    const int other = core ^ (1 << round), peer = fold.position_of(other);
    const std::uint32_t slot = slot_of(doubling_phase, static_cast<std::uint64_t>(round));
    const bool last = round + 1 == fold.rounds(), in_place = last && sum.space == Space::output;
    const Range in = last && !in_place ? output : pool.next(sum.length);
    plan.receive(peer, slot, in);
    plan.send(peer, slot, sum);
    if (in_place) {
      plan.fold(in, sum, other > core);
    } else {
      plan.fold(sum, in, core > other);
      sum = in;
    }
  }
}

/// First half of the ring: in each round, the sum of one more operand goes to the right. Ends with this rank's piece in
/// its place.
void sum_round_the_ring(Plan& plan, const Cut& cut) {
  const Call& call = plan.call();
  const auto n = static_cast<std::uint64_t>(call.size), rank = static_cast<std::uint64_t>(call.rank);
  const int right = (call.rank + 1) % call.size, left = (call.rank + call.size - 1) % call.size;
  const Range own = plan.own(0, call.length), output = plan.output(0, call.length);
  Pool pool(plan, cut.longest(), call.in_place ? n - 1 : 0, 3);
  Range sum = cut.of(own, (rank + n - 1) % n);
  for (std::uint64_t round = 0; round + 1 < n; ++round) {
    const std::uint64_t piece = (rank + 2 * n - 2 - round) % n;
    const Range mine = cut.of(own, piece), in = call.in_place ? pool.next(mine.length) : cut.of(output, piece);
    plan.receive(left, slot_of(first_phase, round), in);
    plan.send(right, slot_of(first_phase, round), sum);
    if (call.in_place && piece == rank) {
      plan.append(in, mine);
    } else {
      plan.combine(mine, in);
      sum = in;
    }
  }
}

}  // namespace

void allreduce_recursive(Plan& plan) {
  const Call& call = plan.call();
  const Fold fold(call.size);
  const int other = fold.other_of(call.rank);
  const Range own = plan.own(0, call.length), output = plan.output(0, call.length);
  if (fold.core_of(call.rank) < 0) {
    plan.send(other, slot_of(first_phase, 0), own);
    plan.receive(other, slot_of(last_phase, 0), output);
    return;
  }
  if (call.size == 1) return plan.copy(own, output);
  Range sum = own;
  if (other >= 0) {
    sum = plan.scratch(call.length);
    plan.receive(other, slot_of(first_phase, 0), sum);
    plan.fold(own, sum, call.rank > other);
  }
  double_sums(plan, fold, sum);
  if (other >= 0) plan.send(other, slot_of(last_phase, 0), output);
}

void allreduce_flat(Plan& plan) {
  const Call& call = plan.call();
  const std::vector<Range> whole(static_cast<std::size_t>(call.size), plan.own(0, call.length));
  reduce_from_each(plan, whole, plan.output(0, call.length));
}

void allreduce_halving_doubling(Plan& plan) {
  const Call& call = plan.call();
  const Fold fold(call.size);
  Halving halving(plan, fold, plan.own(0, call.length), plan.output(0, call.length),
                  Halving::even(fold, call.length, call.element), Halving::Order::near_first);
  halving.reduce();
  halving.spread();
}

void allreduce_ring(Plan& plan) {
  const Call& call = plan.call();
  assert(call.commutes && "sums begin at every rank");
  const auto n = static_cast<std::uint64_t>(call.size), rank = static_cast<std::uint64_t>(call.rank);
  const int right = (call.rank + 1) % call.size, left = (call.rank + call.size - 1) % call.size;
  const Range output = plan.output(0, call.length);
  const Cut cut = Cut::even(call.length, call.element, n);
  if (n == 1) return plan.copy(plan.own(0, call.length), output);
  sum_round_the_ring(plan, cut);
  for (std::uint64_t round = 0; round + 1 < n; ++round) {
    plan.receive(left, slot_of(last_phase, round), cut.of(output, (rank + 2 * n - 1 - round) % n));
    plan.send(right, slot_of(last_phase, round), cut.of(output, (rank + n - round) % n));
  }
}

void allreduce_two_phases(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  const Tree tree = tree_of(call, choice, 0);
  const Cut cut = Cut::segments(call.length, call.element, choice.segment);
  const Range output = plan.output(0, call.length);
  reduce_along(plan, tree, plan.own(0, call.length), output, cut, first_phase);
  bcast_along(plan, tree, output, cut, last_phase);
}

}  // namespace canele::comm::collectives
