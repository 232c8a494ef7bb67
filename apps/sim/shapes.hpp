// SPDX-License-Identifier: BSD-3-Clause
//
// One message to many ranks, by each shape of a multicast and by the one that the engine chooses.
//
// Who: canele-sim. Threads: one.
// Surprise: the shapes are the production engine's, and so is the choice, from what the driver says of the network;
//      only the network is a model. Nothing goes wrong here: virtual time measures the same everywhere.
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

/// A table of destinations, sizes and shapes; fails where the choice is not within a tenth of the best shape at nine
/// points of ten.
Outcome run_shapes(const RunOptions& options);

}  // namespace canele::sim
