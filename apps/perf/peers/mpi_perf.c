/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_perf.c - latency, bandwidth and message rate of any MPI, measured exactly as canele-perf measures Canelé.
 *
 * run.py builds it with each MPI's compiler and starts it on two ranks. One thread. It pins itself to core `rank`, like
 * canele-perf, so that the launchers' own binding does not matter.
 *
 * mpi_perf latency|bandwidth|rate|rate-distinct <size> <batches> <iterations per batch> <core of rank 0> <core of rank
 * 1>
 *
 * Rank 0 prints one line: the samples, one per batch, in us, MB/s or messages/s.
 */
#define _GNU_SOURCE
#include "mpi_common.h"

enum { MAX_WINDOW = 64, ANSWER_TAG = 10, DATA_TAG = 11 }; /* and above, if they are distinct */

struct plan {
  const char *benchmark;
  int size, batches, window, rounds, rank, distinct;
  char *out, *in;
};

static void usage(void) {
  fprintf(stderr,
          "mpi_perf: expected: latency|bandwidth|rate|rate-distinct <size> <batches> <iterations> <core 0> <core 1>\n");
  exit(2);
}

/* Returns the seconds of one message one way. */
static double ping_pong(const struct plan *plan) {
  MPI_Request in;
  const int peer = 1 - plan->rank;
  const double start = MPI_Wtime();
  for (int i = 0; i < plan->rounds; ++i) {
    if (plan->rank == 0) MPI_Send(plan->out, plan->size, MPI_BYTE, peer, DATA_TAG, MPI_COMM_WORLD);
    MPI_Irecv(plan->in, plan->size, MPI_BYTE, peer, DATA_TAG, MPI_COMM_WORLD, &in);
    MPI_Wait(&in, MPI_STATUS_IGNORE);
    if (plan->rank != 0) MPI_Send(plan->out, plan->size, MPI_BYTE, peer, DATA_TAG, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / plan->rounds / 2;
}

/* Returns the seconds per message of a stream. */
static double one_way(const struct plan *plan) {
  MPI_Request requests[MAX_WINDOW];
  const int peer = 1 - plan->rank;
  const double start = MPI_Wtime();
  for (int round = 0; round < plan->rounds; ++round) {
    for (int i = 0; i < plan->window; ++i) {
      const int tag = DATA_TAG + (plan->distinct ? i : 0);
      if (plan->rank == 0) {
        MPI_Isend(plan->out, plan->size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(plan->in, plan->size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(plan->window, requests, MPI_STATUSES_IGNORE);
    if (plan->rank == 0) {
      MPI_Recv(NULL, 0, MPI_BYTE, peer, ANSWER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(NULL, 0, MPI_BYTE, peer, ANSWER_TAG, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / ((double)plan->rounds * plan->window);
}

static double sample(const struct plan *plan) {
  if (strcmp(plan->benchmark, "latency") == 0) return ping_pong(plan) * 1e6;
  if (strcmp(plan->benchmark, "bandwidth") == 0) return plan->size / one_way(plan) / 1e6;
  return 1 / one_way(plan);
}

static struct plan read_plan(char **argv) {
  struct plan plan = {.benchmark = argv[1], .size = number(argv[2], 0, usage), .batches = number(argv[3], 1, usage)};
  if (strcmp(argv[1], "latency") == 0) {
    plan.window = 1;
  } else if (strcmp(argv[1], "bandwidth") == 0) {
    plan.window = 16; /* as canele-perf */
  } else if (strcmp(argv[1], "rate") == 0 || strcmp(argv[1], "rate-distinct") == 0) {
    plan.window = 64;
    plan.distinct = strcmp(argv[1], "rate") != 0;
  } else {
    usage();
  }
  const int iterations = number(argv[4], 1, usage);
  plan.rounds = iterations < plan.window ? 1 : iterations / plan.window;
  const size_t line = 64; /* buffers begin at a cache line, as canele-perf's */
  const size_t bytes = ((size_t)plan.size / line + 1) * line;
  plan.out = aligned_alloc(line, bytes);
  plan.in = aligned_alloc(line, bytes);
  if (plan.out == NULL || plan.in == NULL) {
    fprintf(stderr, "mpi_perf: no memory for messages of %d bytes\n", plan.size);
    exit(1);
  }
  memset(plan.out, 0x5a, (size_t)plan.size + 1); /* as canele-perf; else all pages are the kernel's one page of 0 */
  memset(plan.in, 0x5a, (size_t)plan.size + 1);
  return plan;
}

int main(int argc, char **argv) {
  int ranks;
  if (argc != 7) usage();
  struct plan plan = read_plan(argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "mpi_perf: two ranks are needed, not %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  pin("mpi_perf", number(argv[5 + plan.rank], 0, usage));
  sample(&plan); /* warm-up */
  for (int i = 0; i < plan.batches; ++i) {
    const double value = sample(&plan);
    if (plan.rank == 0) printf("%.9g%s", value, i + 1 < plan.batches ? " " : "\n");
  }
  MPI_Finalize();
  free(plan.out);
  free(plan.in);
  return 0;
}
