// SPDX-License-Identifier: BSD-3-Clause
//
// Trees over the positions of a group: a rank's parent and children, and the operations along the tree.
//
// Used by the algorithms of this directory. Stateless: any thread may call these functions.
//
// A subtree is a contiguous run of neighbours. This is the tree of MPICH's scatter, not the one in which each rank that
// has the data sends it to one that has not. So gather and scatter move a subtree as one message, and a reduction keeps
// the order of operands.
//
//   from the root on, round the group:             flat    0 ─▶ 1 2 3 …       chain   0 ─▶ 1 ─▶ 2 ─▶ 3 …
//
//   k-nomial (k = 2: binomial): the parent of v is v without its lowest digit to base k that is not 0
//       0 ─┬─▶ 1            level 1, half of all messages: 1, 3, 5, 7
//          ├─▶ 2 ─▶ 3       level 2: 2, 6
//          └─▶ 4 ─┬─▶ 5     level 3: 4
//                 └─▶ 6 ─▶ 7
//
//   ordered, for operators that do not commute: one tree over the root and the positions above it, and one over those
//   below it. The head of the latter, position 0, reports to the root. No edge wraps around the group; at most one
//   round more.
//       0 ─┬─▶ 1                       r ─┬─▶ r+1
//          └─▶ 2 ─▶ 3                     └─▶ r+2 ─▶ r+3
//          0 ◀─────────────────────────── r          The sum from below is combined in front of the root's.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/plan.hpp"

namespace canele::comm::collectives {

struct Edge {
  int peer = -1;                      ///< position; -1: the root has no parent.
  std::uint64_t first = 0, size = 0;  ///< the child's subtree, as distances from the root.
  bool higher = true;                 ///< the subtree comes after this rank in the order of operands.
  std::uint8_t level = 0;             ///< 1: the leaves', the widest one; 0: no level is wider than others
};

struct Tree {
  Edge parent;                 ///< first, size: this rank's own subtree
  std::vector<Edge> children;  ///< small subtrees first: the order of reductions; broadcasts use the reverse order
  bool is_root() const { return parent.peer < 0; }
};

/// Returns the radix of a tree of `choice` that is neither flat nor a chain.
inline std::uint32_t radix_of(const Choice& choice) {
  const bool has_one = choice.algorithm == Algorithm::k_nomial || choice.algorithm == Algorithm::two_phases;
  return has_one && choice.radix != 0 ? choice.radix : 2;
}

/// Returns the radix of a tree whose lower levels are wider than those above; 0: the tree has no such levels.
inline std::uint32_t wide_radix_of(const Choice& choice) {
  return choice.algorithm == Algorithm::flat || choice.algorithm == Algorithm::chain ? 0 : radix_of(choice);
}

/// Returns the tree of `choice` as seen by `call`'s rank: flat, chain, or k_nomial, also within two_phases; otherwise
/// binomial.
Tree tree_of(const Call& call, const Choice& choice, int root);
/// Returns the ordered tree. With position 0 as root, it equals tree_of().
Tree ordered_tree_of(const Call& call, const Choice& choice, int root);

/// Sends the root's `buffer` to all ranks, piece by piece; each rank forwards a piece as soon as it has arrived.
void bcast_along(Plan& plan, const Tree& tree, const Range& buffer, const Cut& cut, std::uint32_t phase);
/// Combines the `own` ranges of all ranks into the root's `result`, piece by piece. In place if both ranges are equal.
void reduce_along(Plan& plan, const Tree& tree, const Range& own, const Range& result, const Cut& cut,
                  std::uint32_t phase);

}  // namespace canele::comm::collectives
