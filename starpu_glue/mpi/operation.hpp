// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators: predefined ones per type, and the user's.
//
// Who: reductions. Threads: any; an operator never changes.
// Surprise: the order of the operands is part of the contract (inout = in op inout), so that operators which do not
//      commute, and floating-point sums, give the same result in every run.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "starpu_glue/mpi/type.hpp"

namespace canele::mpi {

/// An operator resolved for a datatype.
struct Operator {
  MPI_User_function* user = nullptr;                                         ///< either this
  void (*kernel)(const void* in, void* inout, std::size_t count) = nullptr;  ///< or this

  /// inout[i] = in[i] op inout[i]. count is at most INT_MAX for users' operators, as in MPI.
  void apply(const void* in, void* inout, std::int64_t count, MPI_Datatype type) const;
};

/// Resolves an operator handle for `type`: MPI_ERR_OP if there is no such operator, or not for this type.
int get_operator(MPI_Op handle, const Type& type, Operator* found);

int new_operator(MPI_User_function* function, MPI_Op* handle);
int free_operator(MPI_Op* handle);

}  // namespace canele::mpi
