// SPDX-License-Identifier: BSD-3-Clause
//
// What canele-model dedicated says of a run: every term, the total, what it is worth, and what to doubt.
//
// Who: main.cpp. Threads: one.
// Surprise: the bare formula stays the prediction; what is known of the run beyond it stands in lines of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "apps/model/input.hpp"

namespace canele::model {

struct Question {
  double cores = 0;  ///< of runs that do not say it themselves; 0: not given
  double dedicated = 1;
  std::vector<double> alphas = {0};
};

/// Throws std::runtime_error if the cores are missing or too few. `dedicated`: the run that is predicted, or nullptr.
nlohmann::json judge(const Case& run, const Question& question, const Observed* dedicated);

/// The same for people.
void print(const nlohmann::json& judged);

}  // namespace canele::model
