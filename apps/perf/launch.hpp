// SPDX-License-Identifier: BSD-3-Clause
//
// Launching: whether this process belongs to a job, and turning it into a job of two.
//
// Who: main, first. Threads: one.
// Surprise: start_job() replaces this process by canele-run, so canele-run's exit code is ours.
#pragma once

#include <string>

namespace canele::perf {

/// True if a launcher has started this process.
bool in_a_job();

/// Becomes `canele-run -n 2 <this program> <its arguments>`. Returns only on failure, with the reason.
std::string start_job(char** argv);

}  // namespace canele::perf
