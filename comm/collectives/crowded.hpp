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

inline constexpr double memory_ns_per_byte = 0.1;  ///< 10 GB/s: read two, write one

/// Of all ranks together; `hops`: messages one after the other, each of which waits for its receiver's turn.
struct Totals {
  double hops = 0, messages = 0, bytes = 0;
  double work = 0;      ///< bytes that are combined, or copied within a rank
  bool by_one = false;  ///< one rank does all of the work
};

/// `all`: bytes of the buffer, or of all parts; `longest`: of a part.
Totals totals_of(const Call& call, const Choice& choice, double all, double longest);

/// ns. More ranks than network.units.
double crowded_time(const Totals& totals, const Network& network);

}  // namespace canele::comm::collectives
