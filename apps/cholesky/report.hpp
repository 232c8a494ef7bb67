// SPDX-License-Identifier: BSD-3-Clause
//
// The report of canele-cholesky: for each run GFlop/s, residual, and what each rank did. Printed by one thread of rank
// 0.
//
// GFlop/s count n³/3 operations, as is usual, whatever number of operations the kernels really did.
#pragma once

#include <string>
#include <vector>

#include "factorisation.hpp"
#include "options.hpp"

namespace canele::cholesky {

/// Prints the head of the table. Prints nothing with --json.
void print_head(const Options& options, int ranks);

/// Prints one run. residual: < 0 if it was not computed.
void print_run(const Options& options, const std::string& way, int run, const std::vector<RankReport>& ranks,
               double residual);

}  // namespace canele::cholesky
