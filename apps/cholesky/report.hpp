// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-cholesky: for each run GFlop/s, residual, and what each rank did.
//
// Who: main, on rank 0. Threads: one.
// Surprise: GFlop/s count n³/3, whatever the tiles' kernels really did, as everybody does.
#pragma once

#include <string>
#include <vector>

#include "factorisation.hpp"
#include "options.hpp"

namespace canele::cholesky {

/// The head of the table. Nothing with --json.
void print_head(const Options& options, int ranks);

/// One run. residual: < 0 if it was not computed.
void print_run(const Options& options, const std::string& way, int run, const std::vector<RankReport>& ranks,
               double residual);

}  // namespace canele::cholesky
