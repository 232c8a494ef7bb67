// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-perf: a table for people, JSON for programs.
//
// Who: rank 0's main. Threads: one.
// Surprise: the ratio is ours over the floor: for latency lower is better, for bandwidth higher.
#pragma once

#include <string>

#include "job.hpp"
#include "measure.hpp"
#include "options.hpp"

namespace canele::perf {

/// Writes to stdout.
void print_report(const Job& job, const Options& options, const Results& results);

/// Where the ranks are pinned, in words.
std::string place_of(const Job& job);

}  // namespace canele::perf
