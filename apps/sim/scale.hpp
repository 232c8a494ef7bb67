// SPDX-License-Identifier: BSD-3-Clause
//
// Scale: thousands of engines in one process, each exchanging messages with a few random partners; what that takes of
// memory and time.
//
// Who: canele-sim. Threads: one.
// Surprise: nothing goes wrong here. Each pair exchanges in both directions, and a rank is chosen by others, too: so it
//      has about twice as many partners as it chooses.
//
//   start ──▶ gate ──▶ exchange ──▶ gate ──▶ leave        memory is read while all stand at a gate
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_scale(const RunOptions& options);

}  // namespace canele::sim
