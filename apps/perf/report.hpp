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

/// Adds the floor of a row, and the ratio to it, if a floor was measured.
void add_floor(nlohmann::json& row, const std::vector<double>& ours, const std::vector<double>& floor);

/// Returns the figures of a row of a table: ours, the floor, the ratio.
std::string figures(const std::vector<double>& ours, const std::vector<double>& floor, int digits);

/// Returns where the ranks are pinned, in words.
std::string place_of(const Job& job);

}  // namespace canele::perf
