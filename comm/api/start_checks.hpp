// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of the settings before canele_init joins the job, and warnings afterwards.
//
// Used by engine_api.cpp, on the thread that calls canele_init. Rank 0 alone logs a warning about the job. One rank of
// each host logs a warning about the host. So a thousand ranks do not each repeat it.
#pragma once

#include <string>
#include <vector>

#include "comm/engine/engine.hpp"

namespace canele::comm::api {

/// Reads the settings among the options of canele_init. Returns "" or the problem.
std::string read_options(const canele_options_t* options, std::vector<std::string>* overrides);

/// Returns "" or the setting that cannot be obeyed, and why, as far as this rank can find out alone.
std::string wrong_setting(const Settings& settings);

/// Logs a warning for each setting that is obeyed, but hardly with the intended effect.
void warn_of_settings(Engine& engine);

}  // namespace canele::comm::api
