// SPDX-License-Identifier: BSD-3-Clause
//
// One message to many ranks, by each shape of a multicast and by the shape that the engine chooses.
//
// One thread. The shapes are the production engine's, and so is the choice, which uses the driver's description of the
// network. Only the network is a model. No faults are injected: virtual time gives the same result everywhere.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

/// Makes a table of destinations, sizes and shapes. Fails unless the choice is within a tenth of the best shape at nine
/// points out of ten.
Outcome run_shapes(const RunOptions& options);

}  // namespace canele::sim
