/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_sandia.c - message rates of any MPI in the patterns of Sandia's micro-benchmark, written anew.
 *
 * compare.py builds it with each MPI's compiler and starts it on any number of ranks. One thread. The point of a
 * pattern is what it leaves out of the timed part. prepost leaves out the posting of receives. cold evicts each rank's
 * caches before each iteration.
 *
 *     single      ranks of the lower half send to those of the upper half, which post receives as they go
 *     pair        neighbour by neighbour: all receives from one side, all sends to the other, wait
 *     prepost     pair, with the receives of all peers posted before the clock starts
 *     allstart    all receives from all, all sends to all, one wait
 *     cold        single, with the caches emptied before each iteration
 *
 * mpi_sandia <pattern> <size> <batches> <iterations per batch> <core of rank 0> <core of rank 1> ...
 *
 * Rank 0 prints one line: the samples, one per batch, in messages/s that a rank sends. Ranks without a core are not
 * pinned.
 */
#define _GNU_SOURCE
#include "mpi_common.h"

enum { MESSAGES = 64, PEERS = 6, TAG = 10, CACHE = 16 << 20 };

struct plan {
  const char *pattern;
  int size, batches, iterations, rank, ranks, peers;
  char *out, *in; /* a slot for each message of each peer */
  MPI_Request *requests;
  int used;
  volatile char *cache; /* NULL: not cold */
};

static void usage(void) {
  fprintf(
      stderr,
      "mpi_sandia: expected: single|pair|prepost|allstart|cold <size> <batches> <iterations> <core 0> <core 1> ...\n");
  exit(2);
}

/* Returns the rank that we send to: neighbours on both sides in turn, +1, -1, +2 ... as far as they exist. */
static int target(const struct plan *plan, int i) {
  const int distance = i / 2 + 1;
  return (plan->rank + (i % 2 == 0 ? distance : plan->ranks - distance)) % plan->ranks;
}

/* Returns the rank that sends to us at that moment. Otherwise pair, which waits for one message at a time, would wait
 * in a ring. */
static int source(const struct plan *plan, int i) {
  return (2 * plan->rank + plan->ranks - target(plan, i)) % plan->ranks;
}

static char *slot(const struct plan *plan, char *memory, int peer, int message) {
  return memory + (size_t)(peer * MESSAGES + message) * (size_t)plan->size;
}

static void post(struct plan *plan, int index, int from) {
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Irecv(slot(plan, plan->in, index, i), plan->size, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
              &plan->requests[plan->used++]);
  }
}

static void start(struct plan *plan, int index, int to) {
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Isend(slot(plan, plan->out, index, i), plan->size, MPI_BYTE, to, TAG, MPI_COMM_WORLD,
              &plan->requests[plan->used++]);
  }
}

static void finish(struct plan *plan) {
  MPI_Waitall(plan->used, plan->requests, MPI_STATUSES_IGNORE);
  plan->used = 0;
}

static void single(struct plan *plan) {
  const int half = plan->ranks / 2;
  if (plan->rank < half) {
    start(plan, 0, plan->rank + half);
  } else if (plan->rank < 2 * half) {
    post(plan, 0, plan->rank - half);
  }
  finish(plan);
}

static void pair(struct plan *plan) {
  for (int i = 0; i < plan->peers; ++i) {
    post(plan, i, source(plan, i));
    start(plan, i, target(plan, i));
    finish(plan);
  }
}

static void post_all(struct plan *plan) {
  for (int i = 0; i < plan->peers; ++i) post(plan, i, source(plan, i));
}

static void start_all(struct plan *plan) {
  for (int i = 0; i < plan->peers; ++i) start(plan, i, target(plan, i));
  finish(plan);
}

static void empty_caches(const struct plan *plan) {
  for (size_t i = 0; plan->cache != NULL && i < CACHE; i += 64) ++plan->cache[i];
}

/* Returns the seconds of the timed part of one iteration. */
static double iterate(struct plan *plan) {
  const int preposted = strcmp(plan->pattern, "prepost") == 0;
  if (preposted) post_all(plan);
  empty_caches(plan);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (strcmp(plan->pattern, "single") == 0 || plan->cache != NULL) {
    single(plan);
  } else if (strcmp(plan->pattern, "pair") == 0) {
    pair(plan);
  } else {
    if (!preposted) post_all(plan);
    start_all(plan);
  }
  return MPI_Wtime() - begin;
}

/* Measures a batch. The slowest rank's time counts, because a sender alone may only have buffered its messages. */
static double sample(struct plan *plan) {
  double own = 0, slowest = 0;
  for (int i = 0; i < plan->iterations; ++i) own += iterate(plan);
  MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const int one_way = strcmp(plan->pattern, "single") == 0 || plan->cache != NULL;
  const double messages = (double)plan->iterations * MESSAGES * (one_way ? 1 : plan->peers);
  return plan->rank == 0 ? messages / slowest : 0;
}

static void *memory(size_t bytes) {
  void *const found = malloc(bytes + 1);
  if (found != NULL)
    return memset(found, 0, bytes + 1); /* written: else all its pages are the kernel's one page of 0 */
  fprintf(stderr, "mpi_sandia: no memory for %zu bytes\n", bytes);
  exit(1);
}

static void set_up(struct plan *plan) {
  MPI_Comm_rank(MPI_COMM_WORLD, &plan->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &plan->ranks);
  if (plan->ranks < 2) {
    fprintf(stderr, "mpi_sandia: two ranks at least are needed, not %d\n", plan->ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  plan->peers = plan->ranks - 1 < PEERS ? plan->ranks - 1 : PEERS;
  if (plan->peers < plan->ranks - 1 && plan->peers % 2 != 0) --plan->peers; /* equally many at + and at - */
  plan->out = memory((size_t)plan->peers * MESSAGES * (size_t)plan->size);
  plan->in = memory((size_t)plan->peers * MESSAGES * (size_t)plan->size);
  plan->requests = memory((size_t)plan->peers * 2 * MESSAGES * sizeof *plan->requests);
  if (strcmp(plan->pattern, "cold") == 0) plan->cache = memory(CACHE);
}

int main(int argc, char **argv) {
  static const char *const patterns[] = {"single", "pair", "prepost", "allstart", "cold"};
  int known = 0;
  if (argc < 7) usage();
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; ++i) known |= strcmp(argv[1], patterns[i]) == 0;
  if (!known) usage();
  struct plan plan = {.pattern = argv[1],
                      .size = number(argv[2], 0, usage),
                      .batches = number(argv[3], 1, usage),
                      .iterations = number(argv[4], 1, usage)};
  MPI_Init(&argc, &argv);
  set_up(&plan);
  if (5 + plan.rank < argc) pin("mpi_sandia", number(argv[5 + plan.rank], 0, usage));
  sample(&plan); /* warm-up */
  for (int i = 0; i < plan.batches; ++i) {
    const double value = sample(&plan);
    if (plan.rank == 0) printf("%.9g%s", value, i + 1 < plan.batches ? " " : "\n");
  }
  MPI_Finalize();
  free(plan.out);
  free(plan.in);
  free(plan.requests);
  free((void *)plan.cache);
  return 0;
}
