// SPDX-License-Identifier: BSD-3-Clause
//
// The cluster of the workloads for measurements: one rank per node, with a network card that reaches the other ranks'
// memory.
//
// One thread. The engine is told exactly the costs that the card has.
#pragma once

#include "apps/sim/run.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

/// Returns the network, strategy and settings of the options, without faults.
WorldOptions cluster_of(const RunOptions& options, int ranks);

}  // namespace canele::sim
