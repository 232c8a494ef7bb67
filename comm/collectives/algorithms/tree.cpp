// SPDX-License-Identifier: BSD-3-Clause
//
// Trees, and the operations along them. A reduction does not copy its operand: the first message received becomes the
// accumulator, and this rank's own operand is combined into it, on the right side.
#include "comm/collectives/algorithms/tree.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm::collectives {
namespace {

/// The ranks of a tree, numbered from 0: positions head, head + 1 …, wrapping around the group.
struct Ranks {
  int head;
  std::uint64_t size;
  int group;

  int position(std::uint64_t v) const {
    return static_cast<int>((static_cast<std::uint64_t>(head) + v) % static_cast<std::uint64_t>(group));
  }
  /// Returns the edge to a child whose subtree has up to `most` ranks, or as many as there are.
  Edge child(std::uint64_t first, std::uint64_t most, std::uint8_t level) const {
    return {position(first), first, std::min(most, size - first), true, level};
  }
};

void grow_k_nomial(Tree& tree, const Ranks& ranks, std::uint64_t v, const Choice& choice) {
  const std::uint64_t radix = radix_of(choice);
  assert(radix >= 2);
  std::uint8_t level = 1;
  for (std::uint64_t weight = 1; weight < ranks.size; weight *= radix, ++level) {
    const std::uint64_t digit = v / weight % radix;
    if (digit != 0) {
      tree.parent = {ranks.position(v - digit * weight), v, std::min(weight, ranks.size - v), false, level};
      return;
    }
    for (std::uint64_t child = v + weight; child < std::min(v + radix * weight, ranks.size); child += weight) {
      tree.children.push_back(ranks.child(child, weight, level));
    }
  }
  assert(v == 0);
}

/// Adds the edges of rank `v`.
void grow(Tree& tree, const Ranks& ranks, std::uint64_t v, const Choice& choice) {
  if (choice.algorithm == Algorithm::flat) {
    if (v != 0) tree.parent = {ranks.head, v, 1, false, 0};
    for (std::uint64_t child = 1; v == 0 && child < ranks.size; ++child) {
      tree.children.push_back(ranks.child(child, 1, 0));
    }
  } else if (choice.algorithm == Algorithm::chain) {
    if (v != 0) tree.parent = {ranks.position(v - 1), v, ranks.size - v, false, 0};
    if (v + 1 < ranks.size) tree.children.push_back(ranks.child(v + 1, ranks.size, 0));
  } else {
    grow_k_nomial(tree, ranks, v, choice);
  }
}

}  // namespace

Tree tree_of(const Call& call, const Choice& choice, int root) {
  const auto n = static_cast<std::uint64_t>(call.size);
  Tree tree;
  tree.parent.size = n;
  const int away = call.rank - root;
  grow(tree, {root, n, call.size}, static_cast<std::uint64_t>(away < 0 ? away + call.size : away), choice);
  return tree;
}

Tree ordered_tree_of(const Call& call, const Choice& choice, int root) {
  const Ranks above{root, static_cast<std::uint64_t>(call.size - root), call.size};
  const Ranks below{0, static_cast<std::uint64_t>(root), call.size};
  Tree tree;
  tree.parent.size = static_cast<std::uint64_t>(call.size);
  if (call.rank > root) {
    grow(tree, above, static_cast<std::uint64_t>(call.rank - root), choice);
  } else if (call.rank == root) {
    // In a flat tree, the lower positions come from the root down, so that the combined operands are always a run of
    // neighbours.
    const bool flat = choice.algorithm == Algorithm::flat;
    for (int lower = root - 1; flat && lower >= 0; --lower) tree.children.push_back({lower, 0, 1, false, 0});
    grow(tree, above, 0, choice);
    // The children above stay in order of their distance; the head of the tree below may come between them.
    const auto place = std::find_if(tree.children.begin(), tree.children.end(),
                                    [&](const Edge& child) { return child.first >= below.size; });
    if (!flat && root > 0) tree.children.insert(place, {0, 0, below.size, false, 0});
  } else if (choice.algorithm == Algorithm::flat || call.rank == 0) {
    if (choice.algorithm != Algorithm::flat) grow(tree, below, 0, choice);
    tree.parent = {root, 0, below.size, true, 0};
  } else {
    grow(tree, below, static_cast<std::uint64_t>(call.rank), choice);
  }
  return tree;
}

void bcast_along(Plan& plan, const Tree& tree, const Range& buffer, const Cut& cut, std::uint32_t phase) {
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    const Range range = cut.of(buffer, piece);
    if (!tree.is_root()) {
      plan.level(tree.parent.level);
      plan.receive(tree.parent.peer, slot_of(phase, piece), range);
    }
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      plan.level(child->level);
      plan.send(child->peer, slot_of(phase, piece), range);
    }
  }
  plan.level(0);
}

void reduce_along(Plan& plan, const Tree& tree, const Range& own, const Range& result, const Cut& cut,
                  std::uint32_t phase) {
  const bool in_place = own.space == result.space && own.offset == result.offset;
  if (tree.is_root() && tree.children.empty()) plan.copy(own, result);
  // Two pools: an accumulator lives while the messages of the other children of its piece arrive.
  const std::uint64_t children = tree.children.size(), sums = tree.is_root() || children == 0 ? 0 : 1;
  Pool first(plan, cut.longest(), cut.count() * sums);
  Pool others(plan, cut.longest(), cut.count() * (children - sums));
  for (std::uint64_t piece = 0; piece < cut.count(); ++piece) {
    Range sum = cut.of(own, piece);
    bool ours = tree.is_root() && in_place;  // `sum` may be written
    for (const Edge& child : tree.children) {
      plan.level(child.level);
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
    plan.level(tree.parent.level);
    if (!tree.is_root()) plan.send(tree.parent.peer, slot_of(phase, piece), sum);
  }
  plan.level(0);
}

}  // namespace canele::comm::collectives
