/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_broadcast.c - one message from rank 0 to all others with any MPI, measured exactly as canele-perf broadcast does.
 *
 * run.py builds it with each MPI's compiler. One thread. A rank reports to the root when it had the message, by a
 * message. Clocks are compared, so all ranks must be on one host. Ranks are not pinned, because there are more of them
 * than cores. For the same reason no rank checks its data before all ranks have it.
 *
 * mpi_broadcast bcast|isend <size> <rounds>
 *
 * Rank 0 prints one line: us from the start to the last arrival, for each counted round. The first rounds do not count:
 * at least twenty, for at least a fifth of a second.
 */
#define _GNU_SOURCE
#include <stdint.h>

#include "mpi_common.h"

enum { WARM_UP = 20, WARM_UP_US = 200000, DATA_TAG = 10, TIME_TAG, DONE_TAG, READY_TAG };

struct plan {
  int collective, size, rounds, rank, ranks;
  uint64_t *words[2];
  MPI_Request *requests;
  double *times;
};

static void usage(void) {
  fprintf(stderr, "mpi_broadcast: expected: bcast|isend <size> <rounds>\n");
  exit(2);
}

static uint64_t word(int round, size_t at) { return ((uint64_t)round + at) * 0x9e3779b97f4a7c15u; }

/* Tells all destinations, which have the message now, to check it and to prepare for the next round, if there is one.
 */
static void let_all_check(const struct plan *plan, int more) {
  const int others = plan->ranks - 1;
  for (int i = 0; i < others; ++i) {
    MPI_Irecv(NULL, 0, MPI_BYTE, i + 1, READY_TAG, MPI_COMM_WORLD, &plan->requests[i]);
    MPI_Send(&more, 1, MPI_INT, i + 1, DONE_TAG, MPI_COMM_WORLD);
  }
  MPI_Waitall(others, plan->requests, MPI_STATUSES_IGNORE);
}

/* Runs a round on rank 0. Returns the us until the last rank has the message. */
static double lead(const struct plan *plan, int round) {
  const int others = plan->ranks - 1;
  MPI_Request *const replies = plan->requests + others;
  for (size_t i = 0; i < (size_t)plan->size / 8 + 1; ++i) plan->words[0][i] = word(round, i);
  for (int i = 0; i < others; ++i) {
    MPI_Irecv(&plan->times[i], 1, MPI_DOUBLE, i + 1, TIME_TAG, MPI_COMM_WORLD, &replies[i]);
  }
  const double start = now_us();
  if (plan->collective) {
    MPI_Bcast(plan->words[0], plan->size, MPI_BYTE, 0, MPI_COMM_WORLD);
  } else {
    for (int i = 0; i < others; ++i) {
      MPI_Isend(plan->words[0], plan->size, MPI_BYTE, i + 1, DATA_TAG, MPI_COMM_WORLD, &plan->requests[i]);
    }
    MPI_Waitall(others, plan->requests, MPI_STATUSES_IGNORE);
  }
  MPI_Waitall(others, replies, MPI_STATUSES_IGNORE);
  double last = 0;
  for (int i = 0; i < others; ++i) last = plan->times[i] > last ? plan->times[i] : last;
  return last - start;
}

static void post(const struct plan *plan, int round) {
  if (plan->collective) return;
  MPI_Irecv(plan->words[round % 2], plan->size, MPI_BYTE, 0, DATA_TAG, MPI_COMM_WORLD, &plan->requests[round % 2]);
}

/* Runs a round on another rank. Returns whether there is another round. */
static int follow(const struct plan *plan, int round) {
  uint64_t *const words = plan->words[round % 2];
  int more;
  if (plan->collective) {
    MPI_Bcast(words, plan->size, MPI_BYTE, 0, MPI_COMM_WORLD);
  } else {
    MPI_Wait(&plan->requests[round % 2], MPI_STATUS_IGNORE);
  }
  const double now = now_us();
  MPI_Send(&now, 1, MPI_DOUBLE, 0, TIME_TAG, MPI_COMM_WORLD);
  MPI_Recv(&more, 1, MPI_INT, 0, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (size_t i = 0; i < (size_t)plan->size / 8; ++i) {
    if (words[i] == word(round, i)) continue;
    fprintf(stderr, "mpi_broadcast: round %d is wrong at word %zu\n", round, i);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (more) post(plan, round + 1);
  MPI_Send(NULL, 0, MPI_BYTE, 0, READY_TAG, MPI_COMM_WORLD);
  return more;
}

static struct plan read_plan(char **argv) {
  struct plan plan = {.size = number(argv[2], 0, usage), .rounds = number(argv[3], 1, usage)};
  plan.collective = strcmp(argv[1], "bcast") == 0;
  if (!plan.collective && strcmp(argv[1], "isend") != 0) usage();
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &plan.ranks);
  for (int i = 0; i < 2; ++i) plan.words[i] = calloc((size_t)plan.size / 8 + 1, 8);
  plan.requests = calloc(2 * (size_t)plan.ranks, sizeof *plan.requests);
  plan.times = calloc((size_t)plan.ranks, sizeof *plan.times);
  if (plan.words[0] != NULL && plan.words[1] != NULL && plan.requests != NULL && plan.times != NULL) return plan;
  fprintf(stderr, "mpi_broadcast: no memory for messages of %d bytes\n", plan.size);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 4) usage();
  MPI_Init(&argc, &argv);
  const struct plan plan = read_plan(argv);
  if (plan.ranks < 2) {
    fprintf(stderr, "mpi_broadcast: a broadcast needs two ranks or more\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (plan.rank != 0) post(&plan, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_us();
  int counted = 0;
  for (int round = 0; plan.rank == 0 && counted < plan.rounds; ++round) {
    const int counts = counted != 0 || (round >= WARM_UP && now_us() - begin >= WARM_UP_US);
    const double value = lead(&plan, round);
    if (counts) printf("%.9g ", value);
    counted += counts;
    let_all_check(&plan, counted < plan.rounds);
  }
  for (int round = 0; plan.rank != 0 && follow(&plan, round); ++round) {
  }
  if (plan.rank == 0) printf("\n");
  MPI_Finalize();
  for (int i = 0; i < 2; ++i) free(plan.words[i]);
  free(plan.requests);
  free(plan.times);
  return 0;
}
