/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints its rank, and that no GPU's memory may be sent. See package_test.py. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank = -1, size = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\n", rank, size);
  MPI_Finalize();
  return MPIX_Query_cuda_support();
}
