// SPDX-License-Identifier: BSD-3-Clause
//
// nbc as a command of canele-perf: a job for each configuration, and what one rank of such a job does.
//
// Who: main. Threads: one. Surprise: a configuration is settings of the library, so none can follow another in one job.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace canele::perf::nbc {

/// Alone: a job for each configuration, with these arguments otherwise. The exit code: 0 if all have ended well.
int each_configuration(const Options& options, const std::vector<std::string>& arguments);
/// In a job, over these drivers ("": as configured). The exit code.
int in_job(const Options& options, const std::string& driver);

}  // namespace canele::perf::nbc
