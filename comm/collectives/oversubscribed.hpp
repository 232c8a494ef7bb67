// SPDX-License-Identifier: BSD-3-Clause
//
// Cost of a collective on an oversubscribed host, where all ranks share few processing units. There the total work
// counts, not the longest path.
//
// Used by choose.cpp and the tests. Stateless: any thread may call it.
//
// Where ranks take turns, nothing is hidden behind anything else. So a chain of segments, the best choice on a network,
// is the worst here. Each of its messages is one more turn, and a turn costs more than to copy some kilobytes.
#pragma once

#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::comm::collectives {

/// Longest message, in bytes, that is sent without a rendezvous.
inline constexpr double fast_bytes = 16000;
inline constexpr double memory_ns_per_byte = 0.02;  ///< reads two bytes, writes one

/// Totals over all ranks. `hops`: messages one after the other, each of which waits for its receiver's turn.
struct Totals {
  double hops = 0, messages = 0, bytes = 0;
  double work = 0;        ///< bytes that are combined, or copied within a rank.
  bool by_one = false;    ///< one rank takes part in all messages, and does all of the work.
  bool in_a_row = false;  ///< messages pass from rank to rank.
  double segments = 0;    ///< of a vector along a tree.
  bool instead = false;   ///< all-to-all, where fewer messages would do
};

/// `all`: bytes of the buffer, or of all blocks; `longest`: bytes of the longest block.
Totals totals_of(const Call& call, const Choice& choice, double all, double longest);

/// Returns the expected time in ns, for more ranks than network.units.
double oversubscribed_time(const Totals& totals, int ranks, const Network& network);

}  // namespace canele::comm::collectives
