// SPDX-License-Identifier: BSD-3-Clause
// Prints its rank. See package_test.py.
#include <mpi.h>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  int rank = -1, size = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::cout << "rank " + std::to_string(rank) + " of " + std::to_string(size) + "\n";
  MPI_Finalize();
}
