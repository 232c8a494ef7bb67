// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-perf: a table for people, JSON for programs. Printed by rank 0; one thread.
//
// The ratio is ours divided by the floor: for latency lower is better, for bandwidth higher.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "job.hpp"
#include "measure.hpp"
#include "options.hpp"

namespace canele::perf {

/// Writes the report to stdout.
void print_report(const Job& job, const Options& options, const Results& results);

/// Returns median, p10, p90 and the samples themselves.
nlohmann::json samples_json(const std::vector<double>& samples);

/// Returns where the ranks are pinned, in words.
std::string place_of(const Job& job);

}  // namespace canele::perf
