// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of MPI-1 that MPI-3.0 removed, for old programs that declare them themselves. Any thread.
#include "calls/datatypes.hpp"

namespace canele::mpi::calls {

int address(void* location, MPI_Aint* address) { return get_address(location, address); }

int type_extent(Type& datatype, MPI_Aint* extent) {
  *extent = datatype.extent();
  return MPI_SUCCESS;
}

int type_lb(Type& datatype, MPI_Aint* displacement) {
  *displacement = datatype.lower;
  return MPI_SUCCESS;
}

int type_ub(Type& datatype, MPI_Aint* displacement) {
  *displacement = datatype.upper;
  return MPI_SUCCESS;
}

int type_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  return type_create_struct(count, {array_of_blocklengths, count}, {array_of_displacements, count}, array_of_types,
                            newtype, Form::small);
}

int type_hvector(int count, int blocklength, MPI_Aint stride, Type& oldtype, MPI_Datatype* newtype) {
  return type_create_hvector(count, blocklength, stride, oldtype, newtype, Form::small);
}

int type_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[], Type& oldtype,
                  MPI_Datatype* newtype) {
  return type_create_hindexed(count, {array_of_blocklengths, count}, {array_of_displacements, count}, oldtype, newtype,
                              Form::small);
}

}  // namespace canele::mpi::calls
