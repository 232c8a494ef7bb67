// SPDX-License-Identifier: BSD-3-Clause
//
// Launching: finds out whether this process belongs to a job, and turns it into a job. One thread.
//
// start_job() replaces this process by canele-run, so canele-run's exit code is ours.
#pragma once

#include <string>
#include <vector>

namespace canele::perf {

/// Returns true if a launcher has started this process.
bool in_a_job();

/// Becomes `canele-run -n <ranks> <this program> <arguments>`. Returns only on failure, with the reason.
std::string start_job(const std::vector<std::string>& arguments, int ranks = 2);

/// Runs `canele-run -n <ranks> <this program> <arguments>` in a process of its own. Waits for it and returns its exit
/// code (128 + signal if it was killed).
int run_job(const std::vector<std::string>& arguments, int ranks = 2);

}  // namespace canele::perf
