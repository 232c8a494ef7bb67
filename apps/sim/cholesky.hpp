// SPDX-License-Identifier: BSD-3-Clause
//
// The communication of a tile Cholesky on P x Q ranks: real messages of the real engine between tasks that only take
// time.
//
// Who: canele-sim. Threads: one.
// Surprise: graph and layout are those of apps/cholesky; what a task, the network and a comparison take is the model's.
//      Nothing goes wrong here: it is there to be measured, and virtual time measures the same everywhere.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_cholesky(const RunOptions& options);

}  // namespace canele::sim
