// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives at random, in two groups, several at a time, waited for in any order, while everything goes wrong.
//
// Who: canele-sim. Threads: one.
// Surprise: a rank that has seen an error begins nothing more in that group; the others must hear of it and end, too.
//     In the other group, if that has not lost a rank, all goes on.
//
//   seed ──▶ rounds: group, operation, root, length, algorithm      the same for all ranks
//        └─▶ each rank: when it starts them, how many at a time, which it waits for first
//
// What every word of a result must be follows from round, position and place alone.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_collectives(const RunOptions& options);

}  // namespace canele::sim
