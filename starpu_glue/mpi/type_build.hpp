// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the datatype code share: limits, the predefined types, stacking of runs.
//
// Who: type*.cpp only. Threads: any; pure functions and constants.
// Surprise: the nesting limit is what bounds the recursion of the layout code.
#pragma once

#include <optional>

#include "starpu_glue/mpi/type.hpp"

namespace canele::mpi {

constexpr int kMaxNesting = 200;
constexpr std::uint32_t kPredefinedTypes = 37;  ///< handle indexes 0 (null) to 36 (MPI_2INT)

/// The predefined type with this handle index, else nullptr.
Type* predefined_type(std::uint32_t index);

/// `count` copies of a run, `stride` bytes apart, as one run; none where no single run is equal to that.
std::optional<Run> stack_runs(const Run& run, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);

}  // namespace canele::mpi
