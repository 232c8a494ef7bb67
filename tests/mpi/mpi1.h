/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of MPI-1, declared as in old programs: mpi.h does not have them.
 */
#pragma once

#include <mpi.h>

int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *handler);
int MPI_Address(void *location, MPI_Aint *address);
int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent);
int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement);
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement);
int MPI_Type_struct(int count, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
                    MPI_Datatype *made);
int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype *made);
int MPI_Type_hindexed(int count, const int lengths[], const MPI_Aint places[], MPI_Datatype type, MPI_Datatype *made);
