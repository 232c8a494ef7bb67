// SPDX-License-Identifier: BSD-3-Clause
//
// Trees over the positions of a group: whom one rank hears, whom it tells, and the walks along them.
//
// Who: the algorithms of this directory. Threads: any; no state.
// Surprise: a subtree is a run of neighbours (the tree of MPICH's scatter, not that of "who has it tells one who has
//     not"). So gather and scatter move it as one message, and a reduction keeps the order of operands.
//
//   from the root on, round the group:             flat    0 ─▶ 1 2 3 …       chain   0 ─▶ 1 ─▶ 2 ─▶ 3 …
//
//   k-nomial (k = 2: binomial): the parent of v is v without its lowest digit to base k that is not 0
//       0 ─┬─▶ 1            level 1, half of all messages: 1, 3, 5, 7
//          ├─▶ 2 ─▶ 3       level 2: 2, 6
//          └─▶ 4 ─┬─▶ 5     level 3: 4
//                 └─▶ 6 ─▶ 7
//
//   ordered, for operators that do not commute: a tree over the root and those above it, and one over those below it,
//   whose head, position 0, reports to the root; so nobody goes round the group, in at most one round more
//       0 ─┬─▶ 1                       r ─┬─▶ r+1
//          └─▶ 2 ─▶ 3                     └─▶ r+2 ─▶ r+3
//          0 ◀─────────────────────────── r          What comes from below is put in front of what the root has.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/plan.hpp"

namespace canele::comm::collectives {

struct Edge {
  int peer = -1;                      ///< position; -1: the root has no parent
  std::uint64_t first = 0, size = 0;  ///< the child's subtree, counted from the root on (by steps away from it)
  bool higher = true;                 ///< the subtree comes after this rank in the order of operands
  std::uint8_t level = 0;             ///< 1: the leaves', the widest one; 0: no level is wider than others
};

struct Tree {
  Edge parent;                 ///< first, size: this rank's own subtree
  std::vector<Edge> children;  ///< small subtrees first: the order of reductions; broadcasts go the other way
  bool is_root() const { return parent.peer < 0; }
};

/// Of a tree of `choice` that is neither flat nor a chain.
inline std::uint32_t radix_of(const Choice& choice) {
  const bool has_one = choice.algorithm == Algorithm::k_nomial || choice.algorithm == Algorithm::two_phases;
  return has_one && choice.radix != 0 ? choice.radix : 2;
}

/// That of a tree whose lower levels are wider than those above; 0: it has no levels.
inline std::uint32_t wide_radix_of(const Choice& choice) {
  return choice.algorithm == Algorithm::flat || choice.algorithm == Algorithm::chain ? 0 : radix_of(choice);
}

/// The tree of `choice` (flat, chain, k_nomial, also of two_phases; all else: binomial) as `call`'s rank sees it.
Tree tree_of(const Call& call, const Choice& choice, int root);
/// The ordered one. With position 0 as root it is the same.
Tree ordered_tree_of(const Call& call, const Choice& choice, int root);

/// Root's `buffer` goes to everybody's, piece by piece; a piece is handed on as soon as it has come.
void bcast_along(Plan& plan, const Tree& tree, const Range& buffer, const Cut& cut, std::uint32_t phase);
/// Everybody's `own` is combined into the root's `result` (the same range: in place), piece by piece.
void reduce_along(Plan& plan, const Tree& tree, const Range& own, const Range& result, const Cut& cut,
                  std::uint32_t phase);

}  // namespace canele::comm::collectives
