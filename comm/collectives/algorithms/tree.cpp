// SPDX-License-Identifier: BSD-3-Clause
//
// Trees, and walks along them. See tree.hpp (who, threads, pictures).
// Surprise: a reduction does not copy its operand. What comes in first becomes the accumulator, and this rank's own
//     operand is combined into it, on the right side.
#include "comm/collectives/algorithms/tree.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm::collectives {
namespace {

/// One side: positions root, root + step, root + 2 * step … are 0, 1, 2 … here.
struct Side {
  int root, step;
  std::uint64_t size;
  int group;

  int position(std::uint64_t v) const {
    const auto away = static_cast<std::int64_t>(v) * step;
    return static_cast<int>(((root + away) % group + group) % group);
  }
};

/// Child `first` of the rank that is `v` in this side; it leads `size` ranks.
Edge child_at(const Side& side, std::uint64_t first, std::uint64_t size, std::uint64_t level, const Choice& choice) {
  return {side.position(first), first, std::min(size, side.size - first), side.step > 0, level <= choice.late};
}

void grow_k_nomial(Tree& tree, const Side& side, std::uint64_t v, const Choice& choice) {
  const std::uint64_t radix = choice.algorithm == Algorithm::k_nomial ? choice.radix : 2;
  assert(radix >= 2);
  std::uint64_t level = 1;
  for (std::uint64_t weight = 1; weight < side.size; weight *= radix, ++level) {
    const std::uint64_t digit = v / weight % radix;
    if (digit != 0) {
      const std::uint64_t size = std::min(weight, side.size - v);
      tree.parent = {side.position(v - digit * weight), v, size, side.step < 0, level <= choice.late};
      return;
    }
    for (std::uint64_t child = v + weight; child < std::min(v + radix * weight, side.size); child += weight) {
      tree.children.push_back(child_at(side, child, weight, level, choice));
    }
  }
  assert(v == 0);
}

/// Adds what the rank `v` sees in this side.
void grow(Tree& tree, const Side& side, std::uint64_t v, const Choice& choice) {
  if (choice.algorithm == Algorithm::flat) {
    if (v != 0) tree.parent = {side.root, v, 1, side.step < 0, false};
    for (std::uint64_t child = 1; v == 0 && child < side.size; ++child) {
      tree.children.push_back(child_at(side, child, 1, ~std::uint64_t{0}, choice));
    }
  } else if (choice.algorithm == Algorithm::chain) {
    if (v != 0) tree.parent = {side.position(v - 1), v, side.size - v, side.step < 0, false};
    if (v + 1 < side.size) tree.children.push_back(child_at(side, v + 1, side.size, ~std::uint64_t{0}, choice));
  } else {
    grow_k_nomial(tree, side, v, choice);
  }
}

}  // namespace

Tree tree_of(const Call& call, const Choice& choice, int root) {
  const auto n = static_cast<std::uint64_t>(call.size);
  Tree tree;
  tree.parent.size = n;
  const int away = call.rank - root;
  grow(tree, {root, 1, n, call.size}, static_cast<std::uint64_t>(away < 0 ? away + call.size : away), choice);
  return tree;
}

Tree ordered_tree_of(const Call& call, const Choice& choice, int root) {
  const Side above{root, 1, static_cast<std::uint64_t>(call.size - root), call.size};
  const Side below{root, -1, static_cast<std::uint64_t>(root) + 1, call.size};
  Tree tree;
  tree.parent.size = static_cast<std::uint64_t>(call.size);
  if (call.rank >= root) grow(tree, above, static_cast<std::uint64_t>(call.rank - root), choice);
  if (call.rank <= root) grow(tree, below, static_cast<std::uint64_t>(root - call.rank), choice);
  // The root has both: small subtrees are there first. Within a side they stay in order.
  std::stable_sort(tree.children.begin(), tree.children.end(),
                   [](const Edge& a, const Edge& b) { return a.first < b.first; });
  return tree;
}

void bcast_along(Plan& plan, const Tree& tree, const Range& buffer, const Cut& cut, std::uint32_t phase) {
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    const Range part = cut.of(buffer, piece);
    if (!tree.is_root()) {
      plan.late(tree.parent.late);
      plan.receive(tree.parent.peer, slot_of(phase, piece), part);
    }
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      plan.late(child->late);
      plan.send(child->peer, slot_of(phase, piece), part);
    }
  }
  plan.late(false);
}

void reduce_along(Plan& plan, const Tree& tree, const Range& own, const Range& result, const Cut& cut,
                  std::uint32_t phase) {
  const bool in_place = own.space == result.space && own.offset == result.offset;
  if (tree.is_root() && tree.children.empty()) plan.copy(own, result);
  // Not one pool for both: an accumulator lives while the other children of its piece come in.
  const std::uint64_t children = tree.children.size(), sums = tree.is_root() || children == 0 ? 0 : 1;
  Pool first(plan, cut.longest(), cut.count() * sums);
  Pool others(plan, cut.longest(), cut.count() * (children - sums));
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    Range sum = cut.of(own, piece);
    bool ours = tree.is_root() && in_place;  // whether `sum` may be written
    for (const Edge& child : tree.children) {
      plan.late(child.late);
      const bool becomes_sum = !ours;
      const Range in = !becomes_sum     ? others.next(sum.length)
                       : tree.is_root() ? cut.of(result, piece)
                                        : first.next(sum.length);
      plan.receive(child.peer, slot_of(phase, piece), in);
      if (becomes_sum) {
        plan.fold(sum, in, !child.higher);
        sum = in;
        ours = true;
      } else {
        plan.fold(in, sum, child.higher);
      }
    }
    plan.late(tree.parent.late);
    if (!tree.is_root()) plan.send(tree.parent.peer, slot_of(phase, piece), sum);
  }
  plan.late(false);
}

}  // namespace canele::comm::collectives
