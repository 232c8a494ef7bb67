// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: on which cores a rank computes, and where progress threads belong.
//
//     two cores, dedicated:  core 0: work of rank 0, work of rank 1    core 1: both workers
//     two cores, otherwise:  core 0: work of rank 0                    core 1: work of rank 1    workers: anywhere
//
// Who: run() and main, before the library is started. Threads: pure functions.
// Surprise: a dedicated core serves all ranks of the host; with two cores their work then shares the other one.
#pragma once

#include <vector>

#include "options.hpp"

namespace canele::perf::nbc {

/// Where progress threads belong: the core asked for, else the last one if it is to be dedicated; -1: anywhere.
int worker_core_of(const Options& options, const std::vector<int>& allowed);
/// Where the ranks of this host compute.
std::vector<int> computing_cores(const Options& options, const std::vector<int>& allowed);
/// Where the rank at this place on its host computes, a core for each of its threads; those of several ranks may be the
/// same. Throws std::runtime_error if a core cannot be had.
std::vector<int> cores_of(const Options& options, const std::vector<int>& allowed, int place);
/// True if some core has threads of several ranks.
bool crowded(const Options& options, const std::vector<int>& allowed, int ranks_here);

}  // namespace canele::perf::nbc
