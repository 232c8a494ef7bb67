// SPDX-License-Identifier: BSD-3-Clause
//
// Scripts: programs in peers that start many jobs, such as compare.py and growth.py. Main thread only.
//
// It does not return if it succeeds, because this process becomes that program.
#pragma once

#include "options.hpp"

namespace canele::perf {

/// Returns exit code 1, after a message.
int run_script(const Options& options);

}  // namespace canele::perf
