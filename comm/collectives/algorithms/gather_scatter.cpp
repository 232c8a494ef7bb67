// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter: flat, or along a binomial tree. Only the root knows the offsets of the blocks, and also their
// lengths if these differ. So blocks of different lengths are moved flat, and a tree moves blocks of one length.
//
//   gather, root 0     1 ─▶ 0 │0 1│      then    2 │2 3│ ─▶ 0 │0 1 2 3│      a rank sends once:
//                      3 ─▶ 2 │2 3│                                          its own block and all received ones
//
// Trees: Kumar, Grama, Gupta, Karypis, Introduction to Parallel Computing, 1994; Thakur, Rabenseifner, Gropp, 2005.
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/layout.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

/// Returns the block of a position in the root's buffer.
Range block_at(const Blocks& blocks, Space space, int position) {
  return {space, blocks.offset_of(position), blocks.length_of(position)};
}

/// Bounds of blocks of one length, indexed by distance from the root.
std::vector<std::uint64_t> equal_bounds(const Call& call) {
  assert(!call.irregular && "a tree needs lengths that all ranks know");
  Blocks blocks;
  blocks.length = call.length;
  return bounds_of(blocks, call.size, 0, call.size);
}

int position_from(const Call& call, std::uint64_t away) {
  return static_cast<int>((static_cast<std::uint64_t>(call.root) + away) % static_cast<std::uint64_t>(call.size));
}

}  // namespace

void gather_flat(Plan& plan) {
  const Call& call = plan.call();
  if (call.rank != call.root) return plan.send(call.root, slot_of(0, 0), plan.own(0, call.length));
  for (int away = 1; away < call.size; ++away) {
    const int peer = position_from(call, static_cast<std::uint64_t>(away));
    plan.receive(peer, slot_of(0, 0), block_at(call.output, Space::output, peer));
  }
  const Range block = block_at(call.output, Space::output, call.root);
  if (!call.in_place) plan.copy(plan.own(0, block.length), block);
}

void scatter_flat(Plan& plan) {
  const Call& call = plan.call();
  if (call.rank != call.root) return plan.receive(call.root, slot_of(0, 0), plan.output(0, call.length));
  for (int away = 1; away < call.size; ++away) {
    const int peer = position_from(call, static_cast<std::uint64_t>(away));
    plan.send(peer, slot_of(0, 0), block_at(call.input, Space::input, peer));
  }
  const Range block = block_at(call.input, Space::input, call.root);
  if (!call.in_place) plan.copy(block, plan.output(0, block.length));
}

void gather_tree(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  const Tree tree = tree_of(call, choice, call.root);
  plan.tree(wide_radix_of(choice));
  if (tree.is_root()) {
    for (const Edge& child : tree.children) {
      plan.level(child.level);
      receive_runs(plan, child.peer, slot_of(0, 0),
                   runs_of(call.output, Space::output, call.size, child.peer, static_cast<int>(child.size)));
    }
    plan.level(0);
    const Range block = block_at(call.output, Space::output, call.root);
    if (!call.in_place) plan.copy(plan.own(0, block.length), block);
    return;
  }
  const std::vector<std::uint64_t> bounds = equal_bounds(call);
  Range subtree = plan.own(0, call.length);
  if (!tree.children.empty()) {
    subtree = plan.scratch(subtree_bytes(tree, bounds));
    plan.copy(plan.own(0, call.length), subtree.slice(0, call.length));
  }
  gather_along(plan, tree, bounds, subtree, 0);
}

void scatter_tree(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  const Tree tree = tree_of(call, choice, call.root);
  plan.tree(wide_radix_of(choice));
  if (tree.is_root()) {
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      plan.level(child->level);
      send_runs(plan, child->peer, slot_of(0, 0),
                runs_of(call.input, Space::input, call.size, child->peer, static_cast<int>(child->size)));
    }
    plan.level(0);
    const Range block = block_at(call.input, Space::input, call.root);
    if (!call.in_place) plan.copy(block, plan.output(0, block.length));
    return;
  }
  const std::vector<std::uint64_t> bounds = equal_bounds(call);
  const Range output = plan.output(0, call.length);
  const Range subtree = tree.children.empty() ? output : plan.scratch(subtree_bytes(tree, bounds));
  scatter_along(plan, tree, bounds, subtree, 0);
  plan.level(tree.parent.level);
  plan.copy(subtree.slice(0, call.length), output);
  plan.level(0);
}

}  // namespace canele::comm::collectives
