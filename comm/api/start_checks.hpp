// SPDX-License-Identifier: BSD-3-Clause
//
// What canele_init looks at before it joins the job, and what it warns of afterwards.
//
// Who: engine_api.cpp. Threads: that of canele_init.
// Surprise: a warning about the job is said by rank 0, one about a host by one rank of it: not by each of a thousand.
#pragma once

#include <string>
#include <vector>

#include "comm/core/engine.hpp"

namespace canele::comm::api {

/// The settings among the options of canele_init. "" or what is wrong with them.
std::string read_options(const canele_options_t* options, std::vector<std::string>* overrides);

/// "" or which setting cannot be obeyed, and why: what can be found out without the other ranks.
std::string wrong_setting(const Settings& settings);

/// What the job does, but hardly as it was meant.
void warn_of_settings(Engine& engine);

}  // namespace canele::comm::api
