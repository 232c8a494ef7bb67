// SPDX-License-Identifier: BSD-3-Clause
//
// Shrink: finds the smallest run that fails in the same way as a given run.
//
// Threads: one; each attempt is a process of its own, because it may end by an assertion. With fewer ranks, or without
// a kind of fault, a seed means another run. Such attempts may therefore use one of the next seeds. Only leaving out
// messages of the plan keeps everything else unchanged.
#pragma once

#include <functional>
#include <string>

#include "apps/sim/run.hpp"

namespace canele::sim {

using Runner = std::function<Outcome(const RunOptions&)>;

struct Shrunk {
  RunOptions run;
  std::string failure;  ///< kind of failure, without numbers; "": the given run does not fail
  int attempts = 0;
};
/// Shrinks a failing run. Calls `tell` with a description of each step.
Shrunk shrink(RunOptions failing, const Runner& runner, const std::function<void(const std::string&)>& tell);

/// Returns the options of canele-sim that give this run.
std::string command_of(const RunOptions& run);

/// Convert "3,7-9" to {3, 7, 8, 9} and back. read_ids() returns false if the text is malformed.
bool read_ids(const std::string& text, std::vector<std::uint32_t>* ids);
std::string text_of(const std::vector<std::uint32_t>& ids);

}  // namespace canele::sim
