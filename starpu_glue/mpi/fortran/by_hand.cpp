// SPDX-License-Identifier: BSD-3-Clause
//
// The common blocks of mpif.h, and what differs between Fortran and C too much for a stub that is made. Any thread.
//
// The arguments of main are not available in Fortran.
#include <algorithm>
#include <utility>

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

/// Calls `read(length, text)`, which is a function in C that has no effect on the text if the length is 0, and writes
/// the text. The lengths of the caller count no final NUL.
template <typename Read>
int read_text(MPI_Fint& length, char* value, std::size_t length_of_value, const Read& read) {
  TextRoom room(length_of_value);
  const bool wanted = length > 0;
  int counted = wanted ? std::min(length, static_cast<MPI_Fint>(length_of_value)) + 1 : 0;
  const auto [code, found] = read(counted, wanted ? room.get() : nullptr);
  if (code != MPI_SUCCESS || !found) return code;
  if (wanted) room.write(value);
  length = counted - 1;
  return code;
}

CANELE_FORTRAN void mpi_info_get_string_(const MPI_Fint* info, char* key, MPI_Fint* buflen, char* value, MPI_Fint* flag,
                                         MPI_Fint* ierror, std::size_t length_of_key, std::size_t length_of_value) try {
  const Text c_key(key, length_of_key);
  const auto read = [&](int& length, char* text) {
    const int code = MPI_Info_get_string(to_handle<MPI_Info>(*info), c_key.get(), &length, text, flag);
    return std::pair(code, *flag != 0);
  };
  answer(ierror, read_text(*buflen, value, length_of_value, read));
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(info_get_string, INFO_GET_STRING);
CANELE_F08_NAMES(info_get_string);

CANELE_FORTRAN void mpi_session_get_nth_pset_(const MPI_Fint* session, const MPI_Fint* info, const MPI_Fint* n,
                                              MPI_Fint* pset_len, char* pset_name, MPI_Fint* ierror,
                                              std::size_t length_of_pset_name) try {
  const auto read = [&](int& length, char* text) {
    const int code =
        MPI_Session_get_nth_pset(to_handle<MPI_Session>(*session), to_handle<MPI_Info>(*info), *n, &length, text);
    return std::pair(code, true);
  };
  answer(ierror, read_text(*pset_len, pset_name, length_of_pset_name, read));
} catch (const std::bad_alloc&) {
  answer(ierror, MPI_ERR_NO_MEM);
}
CANELE_FORTRAN_NAMES(session_get_nth_pset, SESSION_GET_NTH_PSET);
CANELE_F08_NAMES(session_get_nth_pset);

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
