/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_loop.c - computes and communicates in turns: the program that predict.py predicts and then measures.
 *
 * predict.py builds it with canele-mpicc; any MPI would do. One thread. The work is fixed, but its time is not:
 * `calibrate` prints how many turns a millisecond has on an idle core. All runs that are compared do the same number of
 * turns.
 *
 *     mpi_loop calibrate                                       without MPI: prints turns per ms
 *     mpi_loop <form> <operation> <bytes> <turns> <rounds>
 *     form       early     call, compute, wait             overlap is possible
 *                blocking  blocking call, compute          ... once the call is converted
 *                late      compute, call, wait             there is nothing to overlap with
 *                tests     as early, with 16 tests while it computes
 *     operation  exchange (with the next and previous rank), bcast, allreduce
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECES = 16, MOST_REQUESTS = 2 };

struct job {
  int rank, ranks, count; /* number of doubles */
  double *in, *out;
};

static volatile double sink;

static void compute(long turns) {
  double x = 1;
  for (long i = 0; i < turns; ++i) x = x * 0.999 + 1; /* each iteration depends on the one before */
  sink = x;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Returns the turns per millisecond of the fastest of several tries, because other processes may run here, too. */
static int calibrate(void) {
  const long turns = 10000000;
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double begin = now_ms();
    compute(turns);
    const double took = now_ms() - begin;
    if (took < least) least = took;
  }
  printf("%.0f\n", (double)turns / least);
  return 0;
}

static int fail(const char *what) {
  fprintf(stderr,
          "mpi_loop: %s; usage: mpi_loop early|blocking|late|tests exchange|bcast|allreduce <bytes> <turns> "
          "<rounds>\n",
          what);
  return 2;
}

static int start(const struct job *j, char operation, MPI_Request *requests) {
  const int next = (j->rank + 1) % j->ranks, previous = (j->rank + j->ranks - 1) % j->ranks;
  if (operation == 'e') {
    MPI_Irecv(j->out, j->count, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(j->in, j->count, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[1]);
    return 2;
  }
  if (operation == 'b') {
    MPI_Ibcast(j->in, j->count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &requests[0]);
  } else {
    MPI_Iallreduce(j->in, j->out, j->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  }
  return 1;
}

static void call(const struct job *j, char operation) {
  const int next = (j->rank + 1) % j->ranks, previous = (j->rank + j->ranks - 1) % j->ranks;
  if (operation == 'e') {
    MPI_Sendrecv(j->in, j->count, MPI_DOUBLE, next, 1, j->out, j->count, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  } else if (operation == 'b') {
    MPI_Bcast(j->in, j->count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  } else {
    MPI_Allreduce(j->in, j->out, j->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

static void round_of(const struct job *j, char form, char operation, long turns) {
  MPI_Request requests[MOST_REQUESTS];
  if (form == 'b') {
    call(j, operation);
    compute(turns);
    return;
  }
  if (form == 'l') compute(turns);
  const int started = start(j, operation, requests);
  if (form == 'e') compute(turns);
  for (int i = 0; form == 't' && i < PIECES; ++i) {
    int flag;
    compute(turns / PIECES);
    MPI_Testall(started, requests, &flag, MPI_STATUSES_IGNORE);
  }
  MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "calibrate") == 0) return calibrate();
  if (argc != 6) return fail("wrong number of arguments");
  const char form = argv[1][0], operation = argv[2][0];
  if (strchr("eblt", form) == NULL || strchr("eba", operation) == NULL) return fail("unknown form or operation");
  struct job j = {0, 0, atoi(argv[3]) / (int)sizeof(double), NULL, NULL};
  const long turns = atol(argv[4]), rounds = atol(argv[5]);
  if (j.count < 1 || turns < 0 || rounds < 1) return fail("bytes, turns or rounds are wrong");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
  j.in = calloc((size_t)j.count, sizeof(double));
  j.out = calloc((size_t)j.count, sizeof(double));
  if (j.in == NULL || j.out == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  memset(j.in, 1, (size_t)j.count * sizeof(double));
  memset(j.out, 1, (size_t)j.count * sizeof(double));
  for (long i = 0; i < rounds; ++i) round_of(&j, form, operation, turns);
  free(j.in);
  free(j.out);
  return MPI_Finalize();
}
