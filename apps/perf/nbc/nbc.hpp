// SPDX-License-Identifier: BSD-3-Clause
//
// nbc as a command of canele-perf: a job for each configuration, and the work of one rank of such a job. One thread.
//
// A configuration consists of settings of the library, so one job cannot run several configurations.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace canele::perf::nbc {

/// Runs a job for each configuration, with these arguments otherwise. Returns the exit code: 0 if all have ended well.
int each_configuration(const Options& options, const std::vector<std::string>& arguments);
/// Measures in a job, over these drivers ("": as configured). Returns the exit code.
int in_job(const Options& options, const std::string& driver);

}  // namespace canele::perf::nbc
