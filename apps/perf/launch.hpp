// SPDX-License-Identifier: BSD-3-Clause
//
// Launching: whether this process belongs to a job, and turning it into a job.
//
// Who: main, first. Threads: one.
// Surprise: start_job() replaces this process by canele-run, so canele-run's exit code is ours.
#pragma once

#include <string>
#include <vector>

namespace canele::perf {

/// True if a launcher has started this process.
bool in_a_job();

/// Becomes `canele-run -n <ranks> <this program> <arguments>`. Returns only on failure, with the reason.
std::string start_job(const std::vector<std::string>& arguments, int ranks = 2);

/// The same in a process of its own: waits for it and returns its exit code (128 + signal if it was killed).
int run_job(const std::vector<std::string>& arguments, int ranks = 2);

}  // namespace canele::perf
