// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators: predefined ones per type, and the user's.
//
// The order of the operands is part of the contract: inout = in op inout, with `in` from the lower ranks. Operators
// that do not commute therefore give the result that MPI specifies. Any thread may use an operator, because it never
// changes.
#pragma once

#include <canele/collectives.h>
#include <canele/one_sided.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "starpu_glue/mpi/core/integers.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"

namespace canele::mpi {

/// Handles of the predefined operators in mpi_constants.h, as numbers: the handles are no constant expressions.
enum class OperatorNumber : std::size_t {
  null = 0x20,
  sum = 0x21,
  min = 0x22,
  max = 0x23,
  prod = 0x24,
  band = 0x28,
  bor = 0x29,
  bxor = 0x2a,
  land = 0x30,
  lor = 0x31,
  lxor = 0x32,
  minloc = 0x38,
  maxloc = 0x39,
  replace = 0x3c,
  no_op = 0x3d
};
inline OperatorNumber number_of(MPI_Op handle) { return static_cast<OperatorNumber>(handle_bits(handle)); }

using UserFunction = Either<MPI_User_function, MPI_User_function_c>;

/// Calls a function of the program once, for `count` elements, which must fit into the integer that it takes.
void call_once(const UserFunction& function, void* in, void* inout, std::int64_t count, MPI_Datatype type);
/// Returns the most elements for one call of the function.
inline std::int64_t most_at_once(const UserFunction& function) {
  return function.large != nullptr ? INT64_MAX : INT32_MAX;
}

/// An operator resolved for a datatype.
struct Operator {
  UserFunction user;               ///< of the program, or none
  canele_operator_t predefined{};  ///< the engine's operator if there is no user's function
  bool commutes = true;

  /// Computes inout[i] = in[i] op inout[i], in memory that is laid out as the type says.
  void apply(const void* in, void* inout, std::int64_t count, const Type& type) const;
};

/// Resolves an operator handle for `type`. MPI_ERR_OP if the operator does not exist, or not for this type.
int get_operator(MPI_Op handle, const Type& type, Operator* found);

/// Returns a predefined operator for one of the basic types; nullptr if there is none.
const canele_operator_t* predefined_operator(MPI_Op handle, Basic basic);

/// Resolves an operator for the elements of a target in one-sided operations: predefined ones, MPI_REPLACE, MPI_NO_OP.
/// *operation gets the argument of canele_accumulate. Returns an MPI code.
int get_target_operation(MPI_Op handle, const Type& element_type, int* operation, canele_element* element);

int new_operator(const UserFunction& function, bool commutes, MPI_Op* handle);
/// Tells whether the operator commutes: as the program said, or true for predefined ones. Returns an MPI code.
int is_commutative(MPI_Op handle, bool* commutes);
int free_operator(MPI_Op* handle);

}  // namespace canele::mpi
