// SPDX-License-Identifier: BSD-3-Clause
//
// The common blocks of mpif.h, and what differs between Fortran and C too much for a stub that is made. Any thread.
#include "starpu_glue/mpi/fortran/convert.hpp"

MPI_Fint canele_mpi_bottom_, canele_mpi_in_place_, canele_mpi_unweighted_, canele_mpi_weights_empty_;
MPI_Fint canele_mpi_status_ignore_[8], canele_mpi_statuses_ignore_[8];

/// The program's arguments are not available in Fortran.
CANELE_FORTRAN void mpi_init_(MPI_Fint* ierror) { *ierror = MPI_Init(nullptr, nullptr); }
CANELE_FORTRAN_NAMES(init, INIT);

CANELE_FORTRAN void mpi_init_thread_(const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* ierror) {
  *ierror = MPI_Init_thread(nullptr, nullptr, *required, provided);
}
CANELE_FORTRAN_NAMES(init_thread, INIT_THREAD);
