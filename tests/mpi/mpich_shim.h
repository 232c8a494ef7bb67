/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of intercommunicators, which Canelé does not have, for the test library of MPICH: a call says so and ends
 * the job.
 *
 * mpich_rma.py puts it before each of MPICH's sources. A line of MPICH's list that comes here stands in
 * mpich_rma.txt.
 */
#ifndef CANELE_MPICH_SHIM_H
#define CANELE_MPICH_SHIM_H

#include <mpi.h>
#include <stdio.h>

static inline int no_intercommunicators(const char *function) {
  fprintf(stderr, "%s: Canele has no intercommunicators\n", function);
  return MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline int MPI_Intercomm_create(MPI_Comm local, int leader, MPI_Comm peers, int remote_leader, int tag,
                                       MPI_Comm *created) {
  (void)local, (void)leader, (void)peers, (void)remote_leader, (void)tag, (void)created;
  return no_intercommunicators("MPI_Intercomm_create");
}

static inline int MPI_Intercomm_merge(MPI_Comm both, int high, MPI_Comm *merged) {
  (void)both, (void)high, (void)merged;
  return no_intercommunicators("MPI_Intercomm_merge");
}

static inline int MPI_Comm_remote_size(MPI_Comm comm, int *size) {
  (void)comm, (void)size;
  return no_intercommunicators("MPI_Comm_remote_size");
}

/* No communicator is one. */
static inline int MPI_Comm_test_inter(MPI_Comm comm, int *flag) {
  (void)comm;
  *flag = 0;
  return MPI_SUCCESS;
}

#endif
