// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-model dedicated: every term, the total, its accuracy, and the doubts. One thread.
//
// The plain formula stays the prediction. Further knowledge about the run stands in lines of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "apps/model/input.hpp"

namespace canele::model {

struct Question {
  double cores = 0;  ///< for runs that do not have this value themselves; 0: not given
  double dedicated = 1;
  std::vector<double> alphas = {0};
};

/// Evaluates a run. Throws std::runtime_error if the cores are missing or too few. `dedicated`: the run that is
/// predicted, or nullptr.
nlohmann::json judge(const Case& run, const Question& question, const Observed* dedicated);

/// Prints the report as a table.
void print(const nlohmann::json& judged);

}  // namespace canele::model
