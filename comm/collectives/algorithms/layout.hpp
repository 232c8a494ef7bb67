// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: the blocks of consecutive positions, which form one message, and may be anywhere in memory.
//
// Used by the algorithms of this directory. One thread at a time for one plan.
//
// Blocks that are contiguous in memory form one run. A message of one run is sent from, or received into, the caller's
// memory directly; only blocks that really lie apart are packed.
//
//   memory      │ 3 │ 0 │ 1 │   │ 2 │          message of blocks 0, 1, 2       │ 0   1 │ 2 │     two runs
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/plan.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {

/// Returns where `count` blocks would begin if they were contiguous, and where the last one would end. The first block
/// is that of position `first`; positions wrap around the group.
std::vector<std::uint64_t> bounds_of(const Blocks& blocks, int size, int first, int count);

/// Returns the memory of `count` blocks from position `first` on, wrapping around the group.
std::vector<Range> runs_of(const Blocks& blocks, Space space, int size, int first, int count);

void send_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs);
void receive_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs);
/// Copies from one range to runs of the same total length.
void copy_to_runs(Plan& plan, Range from, const std::vector<Range>& runs);

/// Merges copies that are adjacent in both source and destination.
class Copies {
 public:
  explicit Copies(Plan& plan) : plan_(plan) {}
  void add(const Range& from, const Range& to);
  void finish();

 private:
  Plan& plan_;
  Range from_, to_;
};

/// Gathers or scatters along a tree. Each rank's `subtree` is memory for its own block and those of its subtree;
/// `bounds` are indexed by distance from the root. Before a gather, each rank's own block is in place; before a
/// scatter, all blocks are in place at the root.
void gather_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                  std::uint32_t phase);
void scatter_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                   std::uint32_t phase);
/// Returns the number of bytes of that `subtree` memory.
std::uint64_t subtree_bytes(const Tree& tree, const std::vector<std::uint64_t>& bounds);

}  // namespace canele::comm::collectives
