/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mpi.h of the standard ABI of MPI 5.0, for programs that run on any MPI which has that ABI.
 *
 * For programs compiled by canele-mpicc -mpi-abi, and linked with libmpi_abi only. It has all types, constants and
 * functions of the ABI, those that this library lacks among them: a call of one is an error when the program runs. It
 * has nothing else, no types of Fortran and no names of Canelé. */
#ifndef CANELE_STANDARD_ABI
#define CANELE_STANDARD_ABI 1
#endif
#include "../mpi.h"
