// SPDX-License-Identifier: BSD-3-Clause
//
// The cluster of the workloads that are there to be measured: a rank per node, with a network card that reaches the
// others' memory. Who: these workloads. Threads: one. Surprise: what the card costs is what the engine is told it
// costs.
#pragma once

#include "apps/sim/run.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

/// The network, strategy and settings of the options; without faults.
WorldOptions cluster_of(const RunOptions& options, int ranks);

}  // namespace canele::sim
