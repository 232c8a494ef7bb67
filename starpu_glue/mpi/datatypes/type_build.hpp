// SPDX-License-Identifier: BSD-3-Clause
//
// Shared parts of the datatype code (type*.cpp): limits, stacking of runs. Any thread; pure functions and constants.
//
// The nesting limit bounds the recursion of the layout code.
#pragma once

#include <optional>

#include "starpu_glue/mpi/datatypes/type.hpp"

namespace canele::mpi {

constexpr int kMaxNesting = 200;

/// Returns `count` copies of a run, `stride` bytes apart, as one run; nothing if no single run is equal to them.
std::optional<Run> stack_runs(const Run& run, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);

}  // namespace canele::mpi
