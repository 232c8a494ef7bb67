// SPDX-License-Identifier: BSD-3-Clause
//
// Binding: which processors each rank may run on (--bind-to).
//
// Who: Job, once. Threads: one.
// Surprise: "core 0" is the first core that canele-run itself may use, not the machine's first: under taskset or a
//      batch system these differ.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace canele::run {

/// One set per place; rank i gets place i modulo the number of places. Empty: no binding.
/// Throws std::invalid_argument that says what is wrong with `what`, std::runtime_error if hwloc fails.
std::vector<cpu_set_t> binding_places(const std::string& what);

}  // namespace canele::run
