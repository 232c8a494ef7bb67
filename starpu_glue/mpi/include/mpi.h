/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h - the MPI layer of Canelé, which StarPU, Chameleon and ordinary programs with messages, collectives and
 * windows call.
 *
 * For C and C++ programs compiled by canele-mpicc or canele-mpicxx. MPI_THREAD_MULTIPLE is always provided, so any
 * thread may call any function. All of MPI-4.1 is here but two chapters: files (MPI_File_) and the creation of
 * processes (MPI_Comm_spawn and the like). Their functions do not exist, on purpose. Their use is a compile or link
 * error, never a silent no-op.
 *
 * Types and constants have the layout and the values of the standard ABI of MPI 5.0. A handle is a pointer to a
 * structure that does not exist. The null handle of a kind is not 0, and 0 is never valid.
 */
#ifndef CANELE_MPI_H
#define CANELE_MPI_H

#include "mpi_constants.h"
#include "mpi_tools.h"
#include "mpi_types.h"
#ifdef CANELE_STANDARD_ABI /* by standard_abi/mpi.h */
#include "standard_abi/mpi_rest.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CANELE_MPI_API __attribute__((visibility("default")))
#else
#define CANELE_MPI_API
#endif

#ifdef CANELE_STANDARD_ABI
#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0
#else
/* StarPU requests MPI_THREAD_MULTIPLE if this is defined. */
#define MAD_MPI 1
#define CANELE_MPI 1
#define MPI_VERSION 4
#define MPI_SUBVERSION 1
#endif

/* ---------------------------------------------------------------------------------------------- functions */

/* Each as MPI_<name> and, for profiling tools, as PMPI_<name>. */
#ifdef CANELE_STANDARD_ABI
#include "standard_abi/mpi_functions.h"
#else
#include "mpi_functions.h"
#endif

#ifdef __cplusplus
}
#endif

#endif
