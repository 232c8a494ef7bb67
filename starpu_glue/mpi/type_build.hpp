// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the datatype code share: limits, stacking of runs.
//
// Who: type*.cpp only. Threads: any; pure functions and constants.
// Surprise: the nesting limit is what bounds the recursion of the layout code.
#pragma once

#include <optional>

#include "starpu_glue/mpi/type.hpp"

namespace canele::mpi {

constexpr int kMaxNesting = 200;

/// `count` copies of a run, `stride` bytes apart, as one run; none where no single run is equal to that.
std::optional<Run> stack_runs(const Run& run, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);

}  // namespace canele::mpi
