// SPDX-License-Identifier: BSD-3-Clause
//
// What the model is fed with: profiles that our library has written (CANELE_PROFILE), or values in a file.
//
// Who: main.cpp, tests/unit/model. Threads: any; no state.
// Surprise: a job is the mean of its ranks, as the thesis does not say how it was done; the least times are those of
// all
//     ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/model/dedicated.hpp"

namespace canele::model {

/// A run to be judged.
struct Case {
  std::string name;
  Observed run;
  std::optional<double> cores;       ///< of a process
  std::optional<double> measured_s;  ///< what it took with dedicated cores
  std::optional<double> printed_s;   ///< what a document says that the model says
};

/// One file for each rank of a job. Throws std::runtime_error: which file, what is wrong, what would be right.
Observed read_profiles(const std::vector<std::string>& files);

/// An object or a list of them, as in thesis.json. Throws as above.
std::vector<Case> read_values(const std::string& file);

}  // namespace canele::model
