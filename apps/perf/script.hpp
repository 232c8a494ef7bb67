// SPDX-License-Identifier: BSD-3-Clause
//
// Scripts: what starts many jobs is a program of its own in peers: compare.py, growth.py.
//
// Who: main. Threads: the main thread.
// Surprise: it does not return if it succeeds: this process becomes that program.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Exit code 1, when all that is wrong has been said.
int run_script(const Options& options);

}  // namespace canele::perf
