// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that MPI-3.0 removed, for old programs in Fortran: mpif.h and the modules do not declare them. Any
// thread.
//
// Their addresses, extents and displacements are INTEGER. A value that does not fit is an error, not a wrong number.
#include <utility>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/fortran/convert.hpp"

using namespace canele::mpi::fortran;

namespace {

/// Stores the result of a call. Returns the call's code, or an error that the error handler has seen.
int store(int code, const char* name, const char* instead, MPI_Aint value, MPI_Fint* result) {
  if (code != MPI_SUCCESS) return code;
  if (!std::in_range<MPI_Fint>(value)) {
    const int error = canele::mpi::fail(MPI_ERR_VALUE_TOO_LARGE, "%s: %lld does not fit an INTEGER; use %s", name,
                                        static_cast<long long>(value), instead);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, error);
    return error;
  }
  *result = static_cast<MPI_Fint>(value);
  return MPI_SUCCESS;
}

/// Stores the handle of a datatype that a call has made.
void store(int code, MPI_Datatype made, MPI_Fint* newtype, MPI_Fint* ierror) {
  if (code == MPI_SUCCESS) *newtype = to_integer(made);
  answer(ierror, code);
}

std::vector<MPI_Aint> displacements(const MPI_Fint* values, MPI_Fint count) {
  return count > 0 ? std::vector<MPI_Aint>(values, values + count) : std::vector<MPI_Aint>();
}

}  // namespace

CANELE_FORTRAN void mpi_address_(void* location, MPI_Fint* address, MPI_Fint* ierror) {
  MPI_Aint value = 0;
  const int code = MPI_Get_address(to_buffer(location), &value);
  answer(ierror, store(code, "MPI_ADDRESS", "MPI_GET_ADDRESS", value, address));
}
CANELE_FORTRAN_NAMES(address, ADDRESS);

CANELE_FORTRAN void mpi_type_extent_(const MPI_Fint* datatype, MPI_Fint* extent, MPI_Fint* ierror) {
  MPI_Aint lower_bound = 0, value = 0;
  const int code = MPI_Type_get_extent(to_handle<MPI_Datatype>(*datatype), &lower_bound, &value);
  answer(ierror, store(code, "MPI_TYPE_EXTENT", "MPI_TYPE_GET_EXTENT", value, extent));
}
CANELE_FORTRAN_NAMES(type_extent, TYPE_EXTENT);

CANELE_FORTRAN void mpi_type_lb_(const MPI_Fint* datatype, MPI_Fint* displacement, MPI_Fint* ierror) {
  MPI_Aint lower_bound = 0, extent = 0;
  const int code = MPI_Type_get_extent(to_handle<MPI_Datatype>(*datatype), &lower_bound, &extent);
  answer(ierror, store(code, "MPI_TYPE_LB", "MPI_TYPE_GET_EXTENT", lower_bound, displacement));
}
CANELE_FORTRAN_NAMES(type_lb, TYPE_LB);

CANELE_FORTRAN void mpi_type_ub_(const MPI_Fint* datatype, MPI_Fint* displacement, MPI_Fint* ierror) {
  MPI_Aint lower_bound = 0, extent = 0;
  const int code = MPI_Type_get_extent(to_handle<MPI_Datatype>(*datatype), &lower_bound, &extent);
  answer(ierror, store(code, "MPI_TYPE_UB", "MPI_TYPE_GET_EXTENT", lower_bound + extent, displacement));
}
CANELE_FORTRAN_NAMES(type_ub, TYPE_UB);

CANELE_FORTRAN void mpi_type_hvector_(const MPI_Fint* count, const MPI_Fint* blocklength, const MPI_Fint* stride,
                                      const MPI_Fint* oldtype, MPI_Fint* newtype, MPI_Fint* ierror) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int code = MPI_Type_create_hvector(*count, *blocklength, *stride, to_handle<MPI_Datatype>(*oldtype), &made);
  store(code, made, newtype, ierror);
}
CANELE_FORTRAN_NAMES(type_hvector, TYPE_HVECTOR);

CANELE_FORTRAN void mpi_type_hindexed_(const MPI_Fint* count, const MPI_Fint* blocklengths, const MPI_Fint* offsets,
                                       const MPI_Fint* oldtype, MPI_Fint* newtype, MPI_Fint* ierror) try {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int code = MPI_Type_create_hindexed(*count, blocklengths, displacements(offsets, *count).data(),
                                            to_handle<MPI_Datatype>(*oldtype), &made);
  store(code, made, newtype, ierror);
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(type_hindexed, TYPE_HINDEXED);

CANELE_FORTRAN void mpi_type_struct_(const MPI_Fint* count, const MPI_Fint* blocklengths, const MPI_Fint* offsets,
                                     const MPI_Fint* types, MPI_Fint* newtype, MPI_Fint* ierror) try {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  Handles<MPI_Datatype> handles(types, *count);
  const int code =
      MPI_Type_create_struct(*count, blocklengths, displacements(offsets, *count).data(), handles.get(), &made);
  store(code, made, newtype, ierror);
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(type_struct, TYPE_STRUCT);

CANELE_FORTRAN void mpi_errhandler_create_(MPI_Comm_errhandler_function* function, MPI_Fint* errhandler,
                                           MPI_Fint* ierror) {
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  const int code = MPI_Comm_create_errhandler(function, &made);
  if (code == MPI_SUCCESS) *errhandler = to_integer(made);
  answer(ierror, code);
}
CANELE_FORTRAN_NAMES(errhandler_create, ERRHANDLER_CREATE);

CANELE_FORTRAN void mpi_errhandler_get_(const MPI_Fint* comm, MPI_Fint* errhandler, MPI_Fint* ierror) {
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  const int code = MPI_Comm_get_errhandler(to_handle<MPI_Comm>(*comm), &found);
  if (code == MPI_SUCCESS) *errhandler = to_integer(found);
  answer(ierror, code);
}
CANELE_FORTRAN_NAMES(errhandler_get, ERRHANDLER_GET);

CANELE_FORTRAN void mpi_errhandler_set_(const MPI_Fint* comm, const MPI_Fint* errhandler, MPI_Fint* ierror) {
  answer(ierror, MPI_Comm_set_errhandler(to_handle<MPI_Comm>(*comm), to_handle<MPI_Errhandler>(*errhandler)));
}
CANELE_FORTRAN_NAMES(errhandler_set, ERRHANDLER_SET);
