// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter, also of blocks with individual lengths. With operators that commute, halving leaves each piece with
// its owner. Otherwise neighbours exchange first, which keeps the order of operands, and each piece takes one more
// message to its owner. Pieces of folded ranks take one in any case.
//
// Halving, folding: Thakur, Rabenseifner, Gropp, 2005; the ring is the first half of that of allreduce.
#include <algorithm>
#include <cassert>
#include <utility>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/halving.hpp"
#include "comm/collectives/algorithms/layout.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

/// These phases come after those of Halving.
enum ReduceScatterPhase : std::uint32_t { ring_phase, tree_phase, owner_phase = 8 };

/// The input, and where its blocks begin.
struct Operand {
  explicit Operand(const Plan& plan)
      : bounds(bounds_of(plan.call().input, plan.call().size, 0, plan.call().size)), own(plan.own(0, bounds.back())) {}
  Range block(const Range& whole, int position) const {
    const auto at = static_cast<std::size_t>(position);
    return whole.slice(bounds[at], bounds[at + 1] - bounds[at]);
  }
  std::uint64_t longest() const {
    std::uint64_t most = 0;
    for (std::size_t block = 0; block + 1 < bounds.size(); ++block)
      most = std::max(most, bounds[block + 1] - bounds[block]);
    return most;
  }
  std::vector<std::uint64_t> bounds;
  Range own;
};

}  // namespace

/// Combines from the last operand down: combining from lower positions needs no additional memory, whatever the
/// operator. In place, the result would overwrite data that is still to be sent, so it goes to scratch first.
void reduce_from_each(Plan& plan, const std::vector<Range>& blocks, const Range& result) {
  const Call& call = plan.call();
  const Range mine = blocks[static_cast<std::size_t>(call.rank)];
  if (call.size == 1) return plan.copy(mine, result);
  const int last = call.size - 1;
  const Range sum = call.in_place ? plan.scratch(result.length) : result;
  std::vector<Range> operands(blocks.size(), mine);
  for (int away = 1; away < call.size; ++away) {
    const int from = (call.rank + call.size - away) % call.size;
    Range& operand = operands[static_cast<std::size_t>(from)];
    operand = from == last ? sum : plan.scratch(result.length);
    plan.receive(from, slot_of(ring_phase, 0), operand);
  }
  for (int away = 1; away < call.size; ++away) {
    const int to = (call.rank + away) % call.size;
    plan.send(to, slot_of(ring_phase, 0), blocks[static_cast<std::size_t>(to)]);
  }
  if (call.rank == last) plan.copy(mine, sum);
  for (int lower = last; lower-- > 0;) plan.combine(operands[static_cast<std::size_t>(lower)], sum);
  plan.copy(sum, result);
}

void reduce_scatter_recursive(Plan& plan) {
  const Call& call = plan.call();
  const Operand operand(plan);
  const Range result = plan.output(0, operand.block(operand.own, call.rank).length);
  if (call.size == 1) return plan.copy(operand.own, result);
  const Fold fold(call.size);
  std::vector<std::uint64_t> bounds;
  for (int core = 0; core <= fold.cores(); ++core) {
    bounds.push_back(operand.bounds[static_cast<std::size_t>(fold.first_of(core))]);
  }
  const Range sums = plan.scratch(operand.own.length);
  Halving halving(plan, fold, operand.own, sums, std::move(bounds),
                  call.commutes ? Halving::Order::far_first : Halving::Order::near_first);
  halving.reduce();
  const std::uint32_t slot = slot_of(owner_phase, 0);
  const int holder = fold.position_of(halving.holder_of(fold.standing_for(call.rank)));
  if (holder != call.rank) plan.receive(holder, slot, result);
  const int core = fold.core_of(call.rank), piece = core < 0 ? -1 : halving.piece_of(core);
  for (int owner = core < 0 ? 0 : fold.first_of(piece); core >= 0 && owner < fold.first_of(piece + 1); ++owner) {
    const Range block = operand.block(sums, owner);
    owner == call.rank ? plan.copy(block, result) : plan.send(owner, slot, block);
  }
}

void reduce_scatter_flat(Plan& plan) {
  const Call& call = plan.call();
  const Operand operand(plan);
  std::vector<Range> blocks;
  for (int owner = 0; owner < call.size; ++owner) blocks.push_back(operand.block(operand.own, owner));
  reduce_from_each(plan, blocks, plan.output(0, operand.block(operand.own, call.rank).length));
}

void reduce_scatter_ring(Plan& plan) {
  const Call& call = plan.call();
  assert(call.commutes && "sums begin at every rank");
  const Operand operand(plan);
  const int n = call.size, right = (call.rank + 1) % n, left = (call.rank + n - 1) % n;
  const Range result = plan.output(0, operand.block(operand.own, call.rank).length);
  if (n == 1) return plan.copy(operand.own, result);
  Pool pool(plan, operand.longest(), static_cast<std::uint64_t>(n) - 1, 3);
  Range sum = operand.block(operand.own, left);
  for (int round = 0; round + 1 < n; ++round) {
    const int piece = (call.rank + 2 * n - 2 - round) % n;
    const Range mine = operand.block(operand.own, piece);
    const Range in = piece == call.rank && !call.in_place ? result : pool.next(mine.length);
    plan.receive(left, slot_of(ring_phase, static_cast<std::uint64_t>(round)), in);
    plan.send(right, slot_of(ring_phase, static_cast<std::uint64_t>(round)), sum);
    plan.combine(mine, in);
    sum = in;
  }
  plan.copy(sum, result);
}

void reduce_scatter_two_phases(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  const Operand operand(plan);
  const Tree tree = tree_of(call, choice, 0);
  const Range result = plan.output(0, operand.block(operand.own, call.rank).length);
  Range subtree = result;
  if (!tree.children.empty() || tree.is_root()) subtree = plan.scratch(subtree_bytes(tree, operand.bounds));
  // reduce_along() uses only the root's result, which is the whole vector.
  reduce_along(plan, tree, operand.own, tree.is_root() ? subtree : Range{},
               Cut::segments(operand.own.length, call.element, choice.segment), ring_phase);
  scatter_along(plan, tree, operand.bounds, subtree, tree_phase);
  plan.copy(subtree.slice(0, result.length), result);
}

}  // namespace canele::comm::collectives
