// SPDX-License-Identifier: BSD-3-Clause
//
// Shares of converted calls, as the command line has them.
//
// Who: main.cpp, tests/unit/model. Threads: any; no state.
// Surprise: from:to:step includes `to` when steps reach it but for rounding.
#pragma once

#include <string>
#include <vector>

namespace canele::model {

/// "0.5", "0,0.5,1" or "0:1:0.25". Throws std::runtime_error: what is wrong, what would be right.
std::vector<double> parse_alphas(const std::string& text);

}  // namespace canele::model
