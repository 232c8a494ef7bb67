// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks, runs, and the messages and copies that move them. Empty blocks may have any offset; they do not end a run.
#include "comm/collectives/algorithms/layout.hpp"

#include <cassert>

namespace canele::comm::collectives {

std::vector<std::uint64_t> bounds_of(const Blocks& blocks, int size, int first, int count) {
  std::vector<std::uint64_t> bounds(static_cast<std::size_t>(count) + 1);
  for (int block = 0; block < count; ++block) {
    const auto at = static_cast<std::size_t>(block);
    bounds[at + 1] = bounds[at] + blocks.length_of((first + block) % size);
  }
  return bounds;
}

std::vector<Range> runs_of(const Blocks& blocks, Space space, int size, int first, int count) {
  std::vector<Range> runs;
  for (int block = 0; block < count; ++block) {
    const int position = (first + block) % size;
    const std::uint64_t length = blocks.length_of(position), offset = blocks.offset_of(position);
    if (length == 0) continue;
    if (!runs.empty() && runs.back().offset + runs.back().length == offset) {
      runs.back().length += length;
    } else {
      runs.push_back({space, offset, length});
    }
  }
  return runs;
}

namespace {

Range scratch_for(Plan& plan, const std::vector<Range>& runs) {
  std::uint64_t bytes = 0;
  for (const Range& run : runs) bytes += run.length;
  return plan.scratch(bytes);
}

Range slice_of_subtree(const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                       const Edge& child) {
  const std::uint64_t begin = bounds[child.first], end = bounds[child.first + child.size];
  return subtree.slice(begin - bounds[tree.parent.first], end - begin);
}

}  // namespace

void send_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs) {
  if (runs.empty()) return;
  if (runs.size() == 1) return plan.send(peer, slot, runs.front());
  const Range packed = scratch_for(plan, runs);
  std::uint64_t at = 0;
  for (const Range& run : runs) {
    plan.copy(run, packed.slice(at, run.length));
    at += run.length;
  }
  plan.send(peer, slot, packed);
}

void receive_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs) {
  if (runs.empty()) return;
  if (runs.size() == 1) return plan.receive(peer, slot, runs.front());
  const Range packed = scratch_for(plan, runs);
  plan.receive(peer, slot, packed);
  copy_to_runs(plan, packed, runs);
}

void copy_to_runs(Plan& plan, Range from, const std::vector<Range>& runs) {
  for (const Range& run : runs) {
    assert(run.length <= from.length);
    plan.copy(from.slice(0, run.length), run);
    from = from.slice(run.length, from.length - run.length);
  }
}

void Copies::add(const Range& from, const Range& to) {
  const bool follows = from.space == from_.space && from.offset == from_.offset + from_.length &&
                       to.space == to_.space && to.offset == to_.offset + to_.length;
  if (follows && from_.length != 0) {
    from_.length += from.length;
    to_.length += to.length;
    return;
  }
  finish();
  from_ = from;
  to_ = to;
}

void Copies::finish() {
  plan_.copy(from_, to_);
  from_.length = to_.length = 0;
}

std::uint64_t subtree_bytes(const Tree& tree, const std::vector<std::uint64_t>& bounds) {
  return bounds[tree.parent.first + tree.parent.size] - bounds[tree.parent.first];
}

void gather_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                  std::uint32_t phase) {
  for (const Edge& child : tree.children) {
    plan.level(child.level);
    plan.receive(child.peer, slot_of(phase, 0), slice_of_subtree(tree, bounds, subtree, child));
  }
  plan.level(tree.parent.level);
  if (!tree.is_root()) plan.send(tree.parent.peer, slot_of(phase, 0), subtree);
  plan.level(0);
}

void scatter_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                   std::uint32_t phase) {
  plan.level(tree.parent.level);
  if (!tree.is_root()) plan.receive(tree.parent.peer, slot_of(phase, 0), subtree);
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    plan.level(child->level);
    plan.send(child->peer, slot_of(phase, 0), slice_of_subtree(tree, bounds, subtree, *child));
  }
  plan.level(0);
}

}  // namespace canele::comm::collectives
