// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast and reduction: along a tree, or in two phases. The two phases of a reduction are those of a broadcast in
// reverse. But its first phase is not a ring: only halving keeps the order of operands.
//
//   bcast, 4 ranks            scatter          allgather
//     0 │a b c d│  ─▶  │a b c d│ │· b · ·│ │· · c d│ │· · · d│   ─▶  each rank has all; no rank sends more than twice
//                                                                     the buffer, whatever n is
//
// Trees: Kumar, Grama, Gupta, Karypis, Introduction to Parallel Computing, 1994. Two phases: Barnett et al.,
// Interprocessor collective communication library (InterCom), 1994; limits: Thakur, Rabenseifner, Gropp, Optimization
// of collective communication operations in MPICH, 2005.
#include <utility>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/halving.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

enum BcastPhase : std::uint32_t { scatter_phase, allgather_phase };

/// Returns pieces [first, first + count) of the buffer, as positions counted from the root on.
Range pieces_of(const Plan& plan, const Cut& cut, std::uint64_t first, std::uint64_t count) {
  return plan.output(cut.at(first), cut.at(first + count) - cut.at(first));
}

/// A rank with a subtree receives the pieces of the whole subtree, and sends each child those of the child's subtree.
void scatter_pieces(Plan& plan, const Tree& tree, const Cut& cut) {
  if (!tree.is_root()) {
    plan.receive(tree.parent.peer, slot_of(scatter_phase, 0),
                 pieces_of(plan, cut, tree.parent.first, tree.parent.size));
  }
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    plan.send(child->peer, slot_of(scatter_phase, 0), pieces_of(plan, cut, child->first, child->size));
  }
}

/// Passes pieces around the ring. Pieces that a rank received with its subtree are not sent to it again.
void pass_pieces_round(Plan& plan, const Tree& tree, const Cut& cut) {
  const Call& call = plan.call();
  const auto n = static_cast<std::uint64_t>(call.size);
  const std::uint64_t v = tree.parent.first;
  Call neighbour = call;
  neighbour.rank = (call.rank + 1) % call.size;
  const Edge of_next = tree_of(neighbour, {}, call.root).parent;
  const auto has = [](const Edge& edge, std::uint64_t piece) {
    return piece >= edge.first && piece < edge.first + edge.size;
  };
  for (std::uint64_t round = 0; round + 1 < n; ++round) {
    const std::uint64_t out = (v + n - round) % n, in = (v + n - round - 1) % n;
    if (!has(tree.parent, in)) {
      const int from = (call.rank + call.size - 1) % call.size;
      plan.receive(from, slot_of(allgather_phase, in), pieces_of(plan, cut, in, 1));
    }
    if (!has(of_next, out)) {
      plan.send(neighbour.rank, slot_of(allgather_phase, out), pieces_of(plan, cut, out, 1));
    }
  }
}

/// Requires n to be a power of two. In round k, neighbours at distance 2^k exchange the 2^k pieces that each has.
void double_pieces(Plan& plan, const Tree& tree, const Cut& cut) {
  const Call& call = plan.call();
  const auto n = static_cast<std::uint64_t>(call.size);
  const std::uint64_t v = tree.parent.first;
  std::uint64_t round = 0;
  for (std::uint64_t some = 1; some < n; some *= 2, ++round) {
    const std::uint64_t other = v ^ some, mine = v & ~(some - 1), theirs = other & ~(some - 1);
    const auto peer = static_cast<int>((other + static_cast<std::uint64_t>(call.root)) % n);
    // If the lower rank is the parent of the higher one, the scatter has already brought it the higher one's pieces.
    const bool led = v % some == 0;
    if (!led || other < v) plan.receive(peer, slot_of(allgather_phase, round), pieces_of(plan, cut, theirs, some));
    if (!led || other > v) plan.send(peer, slot_of(allgather_phase, round), pieces_of(plan, cut, mine, some));
  }
}

}  // namespace

void bcast_tree(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  plan.tree(wide_radix_of(choice));
  const std::uint64_t segment = choice.algorithm == Algorithm::flat ? 0 : choice.segment;
  bcast_along(plan, tree_of(call, choice, call.root), plan.output(0, call.length),
              Cut::segments(call.length, call.element, segment), scatter_phase);
}

void bcast_two_phases(Plan& plan) {
  const Call& call = plan.call();
  const Tree tree = tree_of(call, {}, call.root);
  const Cut cut = Cut::even(call.length, call.element, static_cast<std::uint64_t>(call.size));
  scatter_pieces(plan, tree, cut);
  in_a_ring(call.size, call.length) ? pass_pieces_round(plan, tree, cut) : double_pieces(plan, tree, cut);
}

void reduce_tree(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  plan.tree(wide_radix_of(choice));
  const std::uint64_t segment = choice.algorithm == Algorithm::flat ? 0 : choice.segment;
  const Tree tree = call.commutes ? tree_of(call, choice, call.root) : ordered_tree_of(call, choice, call.root);
  reduce_along(plan, tree, plan.own(0, call.length), plan.output(0, call.length),
               Cut::segments(call.length, call.element, segment), 0);
}

void reduce_two_phases(Plan& plan) {
  const Call& call = plan.call();
  const Fold fold(call.size, call.root);
  Halving halving(plan, fold, plan.own(0, call.length),
                  call.rank == call.root ? plan.output(0, call.length) : plan.scratch(call.length),
                  Halving::even(fold, call.length, call.element), Halving::Order::near_first);
  halving.reduce();
  halving.gather_to(fold.core_of(call.root));
}

}  // namespace canele::comm::collectives
