// SPDX-License-Identifier: BSD-3-Clause
//
// What a collective costs where all its ranks share few processing units: all that is done, and not the longest path.
//
// Who: choose.cpp, tests. Threads: any; no state.
// Surprise: where ranks take turns nothing is hidden behind anything else. So a chain of segments, the best on a
//     network, is the worst: each of its messages is one more turn, and a turn costs more than to copy some kilobytes.
#pragma once

#include "comm/collectives/algorithms.hpp"

namespace canele::comm::collectives {

/// What is longer is announced, and asked for.
inline constexpr double at_once_bytes = 16000;
inline constexpr double memory_ns_per_byte = 0.02;  ///< read two, write one

/// Of all ranks together; `hops`: messages one after the other, each of which waits for its receiver's turn.
struct Totals {
  double hops = 0, messages = 0, bytes = 0;
  double work = 0;        ///< bytes that are combined, or copied within a rank
  bool by_one = false;    ///< one rank has a hand in all messages, and does all of the work
  bool in_a_row = false;  ///< messages pass from rank to rank
  double segments = 0;    ///< along a tree: of a vector
  bool instead = false;   ///< each with each, where fewer messages would do
};

/// `all`: bytes of the buffer, or of all parts; `longest`: of a part.
Totals totals_of(const Call& call, const Choice& choice, double all, double longest);

/// ns. More ranks than network.units.
double crowded_time(const Totals& totals, int ranks, const Network& network);

}  // namespace canele::comm::collectives
