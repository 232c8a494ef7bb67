/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators are made and freed, one alive at a time, more often than there are numbers of sessions: none fails, and
 * memory stays where it was.
 *
 * Run by ctest, under canele-run: process_strangers_churn_mpi [TIMES]. By hand: a million. One thread in each rank.
 * Memory is that of the heap (mallinfo2), after the first hundredth.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  const int times = argc > 1 ? atoi(argv[1]) : 35000, warm = times / 100;
  int rank, size;
  size_t before = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < times; ++i) {
    MPI_Comm made;
    int out = i, in = -1, sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT, (rank + size - 1) % size, 1, made,
                 MPI_STATUS_IGNORE);
    must(in == i, "a message of another communicator");
    MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, made);
    must(sum == size * i, "a collective of another communicator");
    MPI_Comm_free(&made);
    if (i == warm) before = mallinfo2().uordblks;
  }
  const size_t after = mallinfo2().uordblks;
  if (rank == 0)
    printf("%d communicators, heap %zu bytes after %d of them, %zu at the end\n", times, before, warm, after);
  must(after < before + (1 << 16), "memory has grown");
  MPI_Finalize();
  return 0;
}
