// SPDX-License-Identifier: BSD-3-Clause
//
// The common blocks of mpif.h, and what differs between Fortran and C too much for a stub that is made. Any thread.
//
// The arguments of main are not available in Fortran.
#include <algorithm>

#include "starpu_glue/mpi/fortran/convert.hpp"

MPI_Fint canele_mpi_bottom_, canele_mpi_in_place_, canele_mpi_unweighted_, canele_mpi_weights_empty_;
MPI_Fint canele_mpi_buffer_automatic_;
MPI_Fint canele_mpi_status_ignore_[8], canele_mpi_statuses_ignore_[8];

using namespace canele::mpi::fortran;

CANELE_FORTRAN void mpi_init_(MPI_Fint* ierror) { answer(ierror, MPI_Init(nullptr, nullptr)); }
CANELE_FORTRAN_NAMES(init, INIT);
CANELE_F08_NAMES(init);

CANELE_FORTRAN void mpi_init_thread_(const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* ierror) {
  answer(ierror, MPI_Init_thread(nullptr, nullptr, *required, provided));
}
CANELE_FORTRAN_NAMES(init_thread, INIT_THREAD);
CANELE_F08_NAMES(init_thread);

/// It has no error code.
CANELE_FORTRAN void mpi_pcontrol_(const MPI_Fint* level) { MPI_Pcontrol(*level); }
CANELE_FORTRAN_NAMES(pcontrol, PCONTROL);
CANELE_F08_NAMES(pcontrol);

CANELE_FORTRAN void mpi_info_create_env_(MPI_Fint* info, MPI_Fint* ierror) {
  MPI_Info made = MPI_INFO_NULL;
  const int code = MPI_Info_create_env(0, nullptr, &made);
  if (code == MPI_SUCCESS) *info = to_integer(made);
  answer(ierror, code);
}
CANELE_FORTRAN_NAMES(info_create_env, INFO_CREATE_ENV);
CANELE_F08_NAMES(info_create_env);

/// Lengths count no final NUL. The value is not touched if its length is given as 0, or the key does not exist.
CANELE_FORTRAN void mpi_info_get_string_(const MPI_Fint* info, char* key, MPI_Fint* buflen, char* value, MPI_Fint* flag,
                                         MPI_Fint* ierror, std::size_t length_of_key, std::size_t length_of_value) try {
  const Text c_key(key, length_of_key);
  TextRoom c_value(length_of_value);
  const bool wanted = *buflen > 0;
  int length = wanted ? std::min(*buflen, static_cast<MPI_Fint>(length_of_value)) + 1 : 0;
  const int code =
      MPI_Info_get_string(to_handle<MPI_Info>(*info), c_key.get(), &length, wanted ? c_value.get() : nullptr, flag);
  if (code == MPI_SUCCESS && *flag != 0) {
    if (wanted) c_value.write(value);
    *buflen = length - 1;
  }
  answer(ierror, code);
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(info_get_string, INFO_GET_STRING);
CANELE_F08_NAMES(info_get_string);

/// What an argument of any type and rank begins with, as a Fortran compiler passes it to C.
struct Descriptor {
  void* address;
  std::size_t element_size;
};

/// MPI_Sizeof of both modules.
CANELE_FORTRAN void canele_mpi_sizeof(const Descriptor* x, MPI_Fint* size, MPI_Fint* ierror) {
  *size = static_cast<MPI_Fint>(x->element_size);
  answer(ierror, MPI_SUCCESS);
}

/// The operators of handles in mpi_f08. They return LOGICAL.
CANELE_FORTRAN MPI_Fint canele_mpi_equal_comm_(const MPI_Fint* a, const MPI_Fint* b) { return *a == *b ? 1 : 0; }
CANELE_FORTRAN MPI_Fint canele_mpi_differ_comm_(const MPI_Fint* a, const MPI_Fint* b) { return *a != *b ? 1 : 0; }
#define CANELE_HANDLE_OPERATORS(kind)                                      \
  CANELE_FORTRAN_NAME(canele_mpi_equal_##kind##_, canele_mpi_equal_comm_); \
  CANELE_FORTRAN_NAME(canele_mpi_differ_##kind##_, canele_mpi_differ_comm_)
CANELE_HANDLE_OPERATORS(group);
CANELE_HANDLE_OPERATORS(datatype);
CANELE_HANDLE_OPERATORS(op);
CANELE_HANDLE_OPERATORS(request);
CANELE_HANDLE_OPERATORS(errhandler);
CANELE_HANDLE_OPERATORS(win);
CANELE_HANDLE_OPERATORS(info);
CANELE_HANDLE_OPERATORS(message);
CANELE_HANDLE_OPERATORS(session);
CANELE_HANDLE_OPERATORS(file);
