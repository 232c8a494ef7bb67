// SPDX-License-Identifier: BSD-3-Clause
//
// Scale: thousands of engines in one process, each exchanging messages with a few random partners. Measures the memory
// and time that they take.
//
// One thread. No faults are injected. Each pair exchanges in both directions, and other ranks choose a rank as well. A
// rank therefore has about twice as many partners as it chooses.
//
//   start ──▶ barrier ──▶ exchange ──▶ barrier ──▶ disconnect        memory is read while all wait at a barrier
#pragma once

#include "apps/sim/run.hpp"

namespace canele::sim {

Outcome run_scale(const RunOptions& options);

}  // namespace canele::sim
