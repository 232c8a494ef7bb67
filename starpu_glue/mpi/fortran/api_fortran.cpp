// SPDX-License-Identifier: BSD-3-Clause
//
// The Fortran names of a few MPI functions: start, end, ranks, time, version. Configure checks call them, and so do
// Fortran main programs around a library in C. The names follow gfortran: lower case with an underscore appended.
//
// Reached through mpif.h or the module mpi. Called from the same threads as the C functions. An
// integer of Fortran that names a communicator is the number of its handle. Texts are padded with blanks. Their lengths
// are hidden arguments after all others.
#include <mpi.h>

#include <algorithm>
#include <cstring>

namespace {

void fill(char* text, std::size_t room, const char* from, int length) {
  const std::size_t size = std::min(room, static_cast<std::size_t>(length));
  std::memcpy(text, from, size);
  std::memset(text + size, ' ', room - size);
}

}  // namespace

#define CANELE_FORTRAN extern "C" __attribute__((visibility("default")))

CANELE_FORTRAN void mpi_init_(MPI_Fint* error) { *error = MPI_Init(nullptr, nullptr); }

CANELE_FORTRAN void mpi_init_thread_(const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {
  *error = MPI_Init_thread(nullptr, nullptr, *required, provided);
}

CANELE_FORTRAN void mpi_initialized_(MPI_Fint* flag, MPI_Fint* error) { *error = MPI_Initialized(flag); }

CANELE_FORTRAN void mpi_finalize_(MPI_Fint* error) { *error = MPI_Finalize(); }

CANELE_FORTRAN void mpi_finalized_(MPI_Fint* flag, MPI_Fint* error) { *error = MPI_Finalized(flag); }

CANELE_FORTRAN void mpi_abort_(const MPI_Fint* comm, const MPI_Fint* code, MPI_Fint* error) {
  *error = MPI_Abort(MPI_Comm_f2c(*comm), *code);
}

CANELE_FORTRAN void mpi_comm_rank_(const MPI_Fint* comm, MPI_Fint* rank, MPI_Fint* error) {
  *error = MPI_Comm_rank(MPI_Comm_f2c(*comm), rank);
}

CANELE_FORTRAN void mpi_comm_size_(const MPI_Fint* comm, MPI_Fint* size, MPI_Fint* error) {
  *error = MPI_Comm_size(MPI_Comm_f2c(*comm), size);
}

CANELE_FORTRAN void mpi_barrier_(const MPI_Fint* comm, MPI_Fint* error) { *error = MPI_Barrier(MPI_Comm_f2c(*comm)); }

CANELE_FORTRAN double mpi_wtime_() { return MPI_Wtime(); }

CANELE_FORTRAN double mpi_wtick_() { return MPI_Wtick(); }

CANELE_FORTRAN void mpi_get_version_(MPI_Fint* version, MPI_Fint* subversion, MPI_Fint* error) {
  *error = MPI_Get_version(version, subversion);
}

CANELE_FORTRAN void mpi_get_library_version_(char* text, MPI_Fint* length, MPI_Fint* error, std::size_t room) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  *error = MPI_Get_library_version(version, length);
  fill(text, room, version, *length);
}

CANELE_FORTRAN void mpi_get_processor_name_(char* text, MPI_Fint* length, MPI_Fint* error, std::size_t room) {
  char name[MPI_MAX_PROCESSOR_NAME];
  *error = MPI_Get_processor_name(name, length);
  if (*error == MPI_SUCCESS) fill(text, room, name, *length);
}

CANELE_FORTRAN void mpi_error_string_(const MPI_Fint* code, char* text, MPI_Fint* length, MPI_Fint* error,
                                      std::size_t room) {
  char words[MPI_MAX_ERROR_STRING];
  *error = MPI_Error_string(*code, words, length);
  if (*error == MPI_SUCCESS) fill(text, room, words, *length);
}
