// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates: reductions of an origin's data into a target's, atomic for each element.
//
// Called by api_access.cpp, and by window_access.cpp for single elements. Any thread. All of them, and the atomic
// operations of window_access, are atomic with each other whatever their operators are.
//
//     one word, an operation of canele_atomic    canele_atomic
//     result without gaps                        one canele_accumulate for each block of the target
//     result with gaps, pairs with padding       copies of the elements; the call waits for the result
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/windows/access.hpp"

namespace canele::mpi {

/// Combines the origin's elements into the target's. `result` (nullptr: not wanted) gets what these were before. The
/// operator is predefined, MPI_REPLACE or MPI_NO_OP, which ignores the origin. Returns an MPI code.
int accumulate(Window& window, const OriginData& origin, const OriginData* result, const TargetData& target, MPI_Op op,
               AccessRequest* request);

}  // namespace canele::mpi
