// SPDX-License-Identifier: BSD-3-Clause
//
// Shrink: from a run that fails to the smallest one that is found to fail in the same way.
//
// Who: canele-sim --shrink. Threads: one; each attempt is a process of its own, since it may end by an assertion.
// Surprise: with fewer ranks, or without a kind of fault, a seed means another run: such attempts may take one of the
//      next seeds. Only leaving out messages of the plan keeps all else as it was.
#pragma once

#include <functional>
#include <string>

#include "apps/sim/run.hpp"

namespace canele::sim {

using Runner = std::function<Outcome(const RunOptions&)>;

struct Shrunk {
  RunOptions run;
  std::string failure;  ///< of what kind, numbers left out; "": the run that was given does not fail
  int attempts = 0;
};
/// `tell`: hears of each step.
Shrunk shrink(RunOptions failing, const Runner& runner, const std::function<void(const std::string&)>& tell);

/// The options of canele-sim that give this run.
std::string command_of(const RunOptions& run);

/// "3,7-9" to {3, 7, 8, 9} and back. False: it makes no sense.
bool read_ids(const std::string& text, std::vector<std::uint32_t>* ids);
std::string text_of(const std::vector<std::uint32_t>& ids);

}  // namespace canele::sim
