// SPDX-License-Identifier: BSD-3-Clause
//
// Sampling: what each driver costs on this host, kept in the file that the engine reads at its start.
//
// Who: main. Threads: the main thread.
// Surprise: one job measures one driver: a driver that fails, or that can be opened only once, costs the others
//     nothing.
#pragma once

#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// Alone: a job of two for each driver, one after the other. Returns the exit code: 1 if one could not be measured.
int sample_each(const Options& options);

/// In a job: the one driver to measure. Throws if there are several or none.
std::string only_driver(const Options& options);

/// In a job, on both ranks: measures, writes the file (one rank of each host) and prints the table.
void sample(Job& job, const Options& options);

}  // namespace canele::perf
