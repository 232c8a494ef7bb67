// SPDX-License-Identifier: BSD-3-Clause
//
// Sampling: what each driver costs on this host, kept in the file that the engine reads at its start. Main thread only.
//
// One job measures one driver. A driver that fails, or that can be opened only once, thus does not affect the others.
#pragma once

#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// Runs a job of two for each driver, one after the other. Returns the exit code: 1 if one could not be measured.
int sample_each(const Options& options);

/// Returns the one driver to measure, in a job. Throws if there are several or none.
std::string only_driver(const Options& options);

/// Measures in a job, on both ranks; writes the file (one rank of each host) and prints the table.
void sample(Job& job, const Options& options);

}  // namespace canele::perf
