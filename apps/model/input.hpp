// SPDX-License-Identifier: BSD-3-Clause
//
// Input of the model: profiles that our library has written (CANELE_PROFILE), or values in a file. Any thread; no
// state.
//
// A job is the mean of its ranks, because the thesis does not say how it combined them. The least times are those of
// all ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/model/dedicated.hpp"

namespace canele::model {

/// A run to be evaluated.
struct Case {
  std::string name;
  Observed run;
  std::optional<double> cores;       ///< of a process.
  std::optional<double> measured_s;  ///< time that the run took with dedicated cores.
  std::optional<double> printed_s;   ///< result of the model according to a document.
};

/// Reads one file for each rank of a job. Throws std::runtime_error, which says which file is wrong, how, and what is
/// expected.
Observed read_profiles(const std::vector<std::string>& files);

/// Reads an object or a list of objects, as in thesis.json. Throws like read_profiles().
std::vector<Case> read_values(const std::string& file);

}  // namespace canele::model
