// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: on which cores a rank computes, and where progress threads belong.
//
//     two cores, dedicated:  core 0: work of rank 0, work of rank 1    core 1: both workers
//     two cores, otherwise:  core 0: work of rank 0                    core 1: work of rank 1    workers: anywhere
//
// Used before the library is started. Threads: pure functions. A dedicated core serves all ranks of the host. With two
// cores, their work then shares the other core.
#pragma once

#include <vector>

#include "options.hpp"

namespace canele::perf::nbc {

/// Returns where progress threads belong: the requested core, else the last one if it is to be dedicated; -1: anywhere.
int worker_core_of(const Options& options, const std::vector<int>& allowed);
/// Returns the cores on which the ranks of this host compute.
std::vector<int> computing_cores(const Options& options, const std::vector<int>& allowed);
/// Returns the cores of the rank with this index on its host, one for each of its threads. Several ranks may get the
/// same cores. Throws std::runtime_error if a core is not available.
std::vector<int> cores_of(const Options& options, const std::vector<int>& allowed, int place);
/// Returns true if a core has threads of several ranks.
bool oversubscribed(const Options& options, const std::vector<int>& allowed, int ranks_here);

}  // namespace canele::perf::nbc
