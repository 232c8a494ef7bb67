/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_match.c - time per message of any MPI while N receives, or N messages, wait to be matched. Loops, tags, orders
 * and pinning are those of canele-perf match.
 *
 * run.py builds it with each MPI's compiler and starts it on two ranks. One thread. Rank 0 receives and measures. In
 * the unexpected direction an MPI cannot tell that all messages have arrived. The synchronous marker is therefore sent
 * last, and every MPI that we know takes messages of one sender in order.
 *
 * mpi_match posted|unexpected in-order|reverse|shuffled|deep <seed> <N> <batches> <messages per batch> <core 0> <core
 * 1>
 *
 * Rank 0 prints one line: the samples, one per batch, in ns per message.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "mpi_common.h"

enum { WINDOW = 64, DATA = 0, CONTROL = 1, GO_TAG = 30, MARKER_TAG = 31 };

struct plan {
  int unexpected, count, batches, rounds, rank;
  uint32_t *posts, *sends; /* entries in the order of posting, of sending */
  uint64_t *data;
  MPI_Request *requests;
  MPI_Comm comm[2];
};

static void usage(void) {
  fprintf(stderr,
          "mpi_match: expected: posted|unexpected in-order|reverse|shuffled|deep <seed> <N> <batches> <messages> "
          "<core 0> <core 1>\n");
  exit(2);
}

/* As in match_plan.cpp. */
static int tag_of(uint64_t entry) { return (int)(entry * UINT64_C(2654435761) & ((1u << 21) - 1)); }

static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Allocates zeroed memory, in huge pages if it is large, like canele-perf (huge_array.hpp). */
static void *array(int count, size_t size) {
  const size_t bytes = (size_t)count * size, huge_page = 2 << 20;
  const int large = bytes >= huge_page;
  void *memory = NULL;
  if (posix_memalign(&memory, large ? huge_page : 64, bytes) == 0) {
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes);
  }
  fprintf(stderr, "mpi_match: no memory for %d entries\n", count);
  exit(1);
}

static uint32_t *in_order(int count) {
  uint32_t *const all = array(count, sizeof *all);
  for (int i = 0; i < count; ++i) all[i] = (uint32_t)i;
  return all;
}

static void shuffle(uint32_t *all, int count, uint64_t seed) {
  for (int i = count; i > 1; --i) {
    const int with = (int)(next_random(&seed) % (uint64_t)i);
    const uint32_t kept = all[i - 1];
    all[i - 1] = all[with];
    all[with] = kept;
  }
}

static uint32_t *ordered(const char *order, int count, uint64_t seed) {
  uint32_t *const all = in_order(count);
  if (strcmp(order, "reverse") == 0) {
    for (int i = 0; i < count; ++i) all[i] = (uint32_t)(count - 1 - i);
  } else if (strcmp(order, "shuffled") == 0) {
    shuffle(all, count, seed);
  } else if (strcmp(order, "deep") == 0) { /* shuffled, but entry 0 is the last one */
    memmove(all, all + 1, (size_t)(count - 1) * sizeof *all);
    all[count - 1] = 0;
    shuffle(all, count - 1, seed);
  } else if (strcmp(order, "in-order") != 0) {
    usage();
  }
  return all;
}

static void check_tags(const struct plan *plan) {
  int *most, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  for (int i = 0; found && i < plan->count; ++i) {
    if (tag_of((uint64_t)i) <= *most) continue;
    fprintf(stderr, "mpi_match: tag %d is above this MPI's %d\n", tag_of((uint64_t)i), *most);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void post_all(const struct plan *plan) {
  for (int i = 0; i < plan->count; ++i) {
    MPI_Irecv(&plan->data[i], 8, MPI_BYTE, 1, tag_of(plan->posts[i]), plan->comm[DATA], &plan->requests[i]);
  }
}

/* Returns the seconds of one round, at the receiver. */
static double receive(const struct plan *plan) {
  MPI_Request marker, go;
  double start;
  if (plan->unexpected) {
    MPI_Irecv(NULL, 0, MPI_BYTE, 1, MARKER_TAG, plan->comm[CONTROL], &marker);
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO_TAG, plan->comm[CONTROL]);
    MPI_Wait(&marker, MPI_STATUS_IGNORE);
    start = MPI_Wtime();
    post_all(plan);
    MPI_Waitall(plan->count, plan->requests, MPI_STATUSES_IGNORE);
    return MPI_Wtime() - start;
  }
  post_all(plan);
  start = MPI_Wtime();
  MPI_Isend(NULL, 0, MPI_BYTE, 1, GO_TAG, plan->comm[CONTROL], &go);
  MPI_Waitall(plan->count, plan->requests, MPI_STATUSES_IGNORE);
  const double time = MPI_Wtime() - start;
  MPI_Wait(&go, MPI_STATUS_IGNORE);
  return time;
}

static void send(const struct plan *plan) {
  MPI_Recv(NULL, 0, MPI_BYTE, 0, GO_TAG, plan->comm[CONTROL], MPI_STATUS_IGNORE);
  for (int i = 0; i < plan->count; ++i) {
    MPI_Request *const request = &plan->requests[i % WINDOW];
    if (i >= WINDOW) MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Isend(&plan->data[i], 8, MPI_BYTE, 0, tag_of(plan->sends[i]), plan->comm[DATA], request);
  }
  MPI_Waitall(plan->count < WINDOW ? plan->count : WINDOW, plan->requests, MPI_STATUSES_IGNORE);
  if (plan->unexpected) MPI_Ssend(NULL, 0, MPI_BYTE, 0, MARKER_TAG, plan->comm[CONTROL]);
}

/* Checks that each receive has got the message of its entry. */
static void check(const struct plan *plan) {
  for (int i = 0; i < plan->count; ++i) {
    if (plan->data[i] == plan->posts[i]) continue;
    fprintf(stderr, "mpi_match: receive %d got message %llu, not %u\n", i, (unsigned long long)plan->data[i],
            plan->posts[i]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static double sample(const struct plan *plan) {
  double seconds = 0;
  for (int round = 0; round < plan->rounds; ++round) {
    if (plan->rank == 0) {
      memset(plan->data, 0xff, (size_t)plan->count * sizeof *plan->data);
      seconds += receive(plan);
      check(plan);
    } else {
      send(plan);
    }
  }
  return seconds * 1e9 / ((double)plan->rounds * plan->count);
}

int main(int argc, char **argv) {
  int ranks;
  if (argc != 9 || (strcmp(argv[1], "posted") != 0 && strcmp(argv[1], "unexpected") != 0)) usage();
  struct plan plan = {.unexpected = strcmp(argv[1], "unexpected") == 0,
                      .count = number(argv[4], 1, usage),
                      .batches = number(argv[5], 1, usage)};
  const int messages = number(argv[6], 1, usage);
  uint32_t *const first = in_order(plan.count), *const then =
                                                    ordered(argv[2], plan.count, (uint64_t)number(argv[3], 0, usage));
  plan.rounds = messages < plan.count ? 1 : messages / plan.count;
  plan.posts = plan.unexpected ? then : first;
  plan.sends = plan.unexpected ? first : then;
  plan.data = array(plan.count, sizeof *plan.data);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "mpi_match: two ranks are needed, not %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  pin("mpi_match", number(argv[7 + plan.rank], 0, usage));
  check_tags(&plan);
  MPI_Comm_dup(MPI_COMM_WORLD, &plan.comm[DATA]);
  MPI_Comm_dup(MPI_COMM_WORLD, &plan.comm[CONTROL]);
  plan.requests = array(plan.rank == 0 ? plan.count : WINDOW, sizeof *plan.requests);
  for (int i = 0; plan.rank != 0 && i < plan.count; ++i) plan.data[i] = plan.sends[i];
  sample(&plan); /* warm-up */
  for (int i = 0; i < plan.batches; ++i) {
    const double value = sample(&plan);
    if (plan.rank == 0) printf("%.9g%s", value, i + 1 < plan.batches ? " " : "\n");
  }
  MPI_Comm_free(&plan.comm[DATA]);
  MPI_Comm_free(&plan.comm[CONTROL]);
  MPI_Finalize();
  free(first);
  free(then);
  free(plan.data);
  free(plan.requests);
  return 0;
}
