// SPDX-License-Identifier: BSD-3-Clause
//
// Binding: which processors each rank may run on (--bind-to). Job calls it once, in one thread.
//
// "core 0" is the first core that canele-run itself may use, not the machine's first. Under taskset or a batch system
// these differ.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace canele::run {

/// Returns one set per place; rank i gets place i modulo the number of places. An empty list means no binding. Throws
/// std::invalid_argument, which says what is wrong with `what`, or std::runtime_error if hwloc fails.
std::vector<cpu_set_t> binding_places(const std::string& what);

}  // namespace canele::run
