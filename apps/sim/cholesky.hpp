// SPDX-License-Identifier: BSD-3-Clause
//
// The communication of a tile Cholesky on P x Q ranks: real messages of the real engine between tasks that only take
// time.
//
// One thread. Graph and layout are those of apps/cholesky. The times of a task, of the network and of a comparison are
// the model's. No faults are injected: the workload is for measurements, and virtual time gives the same result
// everywhere.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_cholesky(const RunOptions& options);

}  // namespace canele::sim
