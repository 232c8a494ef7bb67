// SPDX-License-Identifier: BSD-3-Clause
//
// Shares of converted calls, as given on the command line. Any thread; no state.
//
// from:to:step includes `to` if the steps reach it except for rounding.
#pragma once

#include <string>
#include <vector>

namespace canele::model {

/// Parses "0.5", "0,0.5,1" or "0:1:0.25". Throws std::runtime_error, which says what is wrong and what is expected.
std::vector<double> parse_alphas(const std::string& text);

}  // namespace canele::model
