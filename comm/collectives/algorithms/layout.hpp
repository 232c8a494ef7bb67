// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: parts of positions that follow each other, which are one message, and may be anywhere in memory.
//
// Who: the algorithms of this directory. Threads: one at a time for one plan.
// Surprise: parts that happen to lie one after the other are one run, and a message of one run is sent from, or
// received
//     into, the caller's memory itself; only what really lies apart is packed.
//
//   memory      │ 3 │ 0 │ 1 │   │ 2 │          message of parts 0, 1, 2        │ 0   1 │ 2 │     two runs
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/plan.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {

/// Where `count` parts would begin that lie one after the other, from position `first` on and round the group; and
/// where the last one would end.
std::vector<std::uint64_t> bounds_of(const Parts& parts, int size, int first, int count);

/// The memory of `count` parts from position `first` on and round the group.
std::vector<Range> runs_of(const Parts& parts, Space space, int size, int first, int count);

void send_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs);
void receive_runs(Plan& plan, int peer, std::uint32_t slot, const std::vector<Range>& runs);
/// From one range to runs that are as long together.
void copy_to_runs(Plan& plan, Range from, const std::vector<Range>& runs);

/// Copies that follow each other in both places become one.
class Copies {
 public:
  explicit Copies(Plan& plan) : plan_(plan) {}
  void add(const Range& from, const Range& to);
  void finish();

 private:
  Plan& plan_;
  Range from_, to_;
};

/// Each rank's `subtree` is memory for its own part and those of all that it leads; `bounds` by how far from the root.
/// Own parts are there already, and come together at the root; or all of them are there at the root, and come apart.
void gather_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                  std::uint32_t phase);
void scatter_along(Plan& plan, const Tree& tree, const std::vector<std::uint64_t>& bounds, const Range& subtree,
                   std::uint32_t phase);
/// How many bytes that memory takes.
std::uint64_t subtree_bytes(const Tree& tree, const std::vector<std::uint64_t>& bounds);

}  // namespace canele::comm::collectives
