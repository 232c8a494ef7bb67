// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators: predefined ones per type, and the user's.
//
// Who: reductions, MPI_Op_ functions, MPI_Reduce_local. Threads: any; an operator never changes.
// Surprise: the order of the operands is part of the contract (inout = in op inout, `in` of the lower ranks), so that
//      operators which do not commute give what MPI says.
#pragma once

#include <canele/collectives.h>
#include <mpi.h>

#include <cstdint>

#include "starpu_glue/mpi/type.hpp"

namespace canele::mpi {

/// An operator resolved for a datatype.
struct Operator {
  MPI_User_function* user = nullptr;  ///< either this
  canele_operator_t predefined{};     ///< or this
  bool commutes = true;

  /// inout[i] = in[i] op inout[i], in memory that is laid out as the type says.
  void apply(const void* in, void* inout, int count, MPI_Datatype type) const;
};

/// Resolves an operator handle for `type`: MPI_ERR_OP if there is no such operator, or not for this type.
int get_operator(MPI_Op handle, const Type& type, Operator* found);

/// That of a predefined operator for one of the basic types; nullptr if there is none.
const canele_operator_t* predefined_operator(MPI_Op handle, Basic basic);

int new_operator(MPI_User_function* function, bool commutes, MPI_Op* handle);
/// Whether the program said so; predefined ones do. MPI code.
int is_commutative(MPI_Op handle, bool* commutes);
int free_operator(MPI_Op* handle);

}  // namespace canele::mpi
