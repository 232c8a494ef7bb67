// SPDX-License-Identifier: BSD-3-Clause
//
// Random collectives in two groups, several at a time, waited for in any order, while all kinds of faults happen. One
// thread.
//
// A rank that has seen an error starts nothing more in that group. The other ranks must be informed of the error and
// end, too. The other group continues if it has not lost a rank.
//
//   seed ──▶ rounds: group, operation, root, length, algorithm      the same for all ranks
//        └─▶ each rank: when it starts them, how many at a time, which it waits for first
//
// Round, position and place determine every word of a result.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_collectives(const RunOptions& options);

}  // namespace canele::sim
