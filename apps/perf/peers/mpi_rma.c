/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_rma.c - one-sided operations of any MPI, measured exactly as canele-perf put, get and atomics measure Canelé.
 *
 * compare.py builds it with each MPI's compiler and starts it on two ranks: rank 0 is the origin, rank 1 the target,
 * which waits in a receive meanwhile. One thread. Both ranks lock the window once, before the first operation. The data
 * is checked afterwards: of a put and of an atomic operation at the target, of a get at the origin.
 *
 * mpi_rma put|get|fetch-and-add|compare-and-swap latency|rate mapped|registered <window> <size> <batches> <iterations
 * per batch> <core of rank 0> <core of rank 1>
 *
 * mapped: MPI_Win_allocate; registered: MPI_Win_create. latency: one operation and MPI_Win_flush; rate: <window>
 * operations and MPI_Win_flush. Rank 0 prints one line: the samples, one per batch, in us or operations/s.
 */
#define _GNU_SOURCE
#include <stdint.h>

#include "mpi_common.h"

enum { ORIGIN = 0, TARGET = 1, PATTERN = 0x5a, END_TAG = 22 };

union word {
  uint32_t shorter;
  uint64_t longer;
};

struct plan {
  const char *operation;
  int latency, mapped, window, size, batches, rounds, rank, is_get, is_add, atomic;
  size_t slots; /* bytes of a window's operations: memory of the target, and of the origin */
  char *buffer, *memory;
  union word *operands, *compares; /* of the atomic operations of a window */
  uint64_t done;                   /* operations so far; an atomic operation finds this number in the word */
  MPI_Datatype word;
  MPI_Win win;
};

static void usage(void) {
  fprintf(stderr,
          "mpi_rma: expected: put|get|fetch-and-add|compare-and-swap latency|rate mapped|registered <window> "
          "<size> <batches> <iterations> <core 0> <core 1>\n");
  exit(2);
}

static void fail(const struct plan *plan, const char *what) {
  fprintf(stderr, "mpi_rma: %s of %d bytes: %s\n", plan->operation, plan->size, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Writes a number in the size of the word. Words live until the flush, as MPI demands. */
static void store(const struct plan *plan, union word *word, uint64_t value) {
  if (plan->size == (int)sizeof word->shorter) {
    word->shorter = (uint32_t)value;
  } else {
    word->longer = value;
  }
}

/* Starts one operation. Atomic operations take the first word, puts and gets a slot of their own. */
static void post(struct plan *plan, int slot) {
  char *const local = plan->buffer + (size_t)slot * (size_t)plan->size;
  if (plan->atomic) {
    union word *const operand = &plan->operands[slot], *const compare = &plan->compares[slot];
    store(plan, operand, plan->is_add ? 1 : plan->done + 1);
    if (plan->is_add) {
      MPI_Fetch_and_op(operand, local, plan->word, TARGET, 0, MPI_SUM, plan->win);
    } else {
      store(plan, compare, plan->done);
      MPI_Compare_and_swap(operand, compare, local, plan->word, TARGET, 0, plan->win);
    }
  } else if (plan->is_get) {
    MPI_Get(local, plan->size, MPI_BYTE, TARGET, (MPI_Aint)slot * plan->size, plan->size, MPI_BYTE, plan->win);
  } else {
    MPI_Put(local, plan->size, MPI_BYTE, TARGET, (MPI_Aint)slot * plan->size, plan->size, MPI_BYTE, plan->win);
  }
  ++plan->done;
}

/* Returns a batch in the unit of the samples. */
static double sample(struct plan *plan) {
  const double start = MPI_Wtime();
  for (int round = 0; round < plan->rounds; ++round) {
    for (int slot = 0; slot < plan->window; ++slot) post(plan, slot);
    MPI_Win_flush(TARGET, plan->win);
  }
  const double each = (MPI_Wtime() - start) / ((double)plan->rounds * plan->window);
  return plan->latency ? each * 1e6 : 1 / each;
}

/* Checks one word against a number. */
static void check_word(const struct plan *plan, const char *data, uint64_t expected) {
  union word word = {.longer = 0}, right = {.longer = 0};
  memcpy(&word, data, (size_t)plan->size);
  store(plan, &right, expected);
  if (word.longer != right.longer) fail(plan, "wrong data");
}

static void check_pattern(const struct plan *plan, const char *data) {
  for (size_t i = 0; i < plan->slots; ++i) {
    if (data[i] != PATTERN) fail(plan, "wrong data");
  }
}

static void measure(struct plan *plan) {
  sample(plan); /* warm-up */
  for (int i = 0; i < plan->batches; ++i) printf("%.9g%s", sample(plan), i + 1 < plan->batches ? " " : "\n");
  if (plan->is_get) check_pattern(plan, plan->buffer);
  for (int slot = 0; plan->atomic && slot < plan->window; ++slot) { /* each has found the number of those before it */
    check_word(plan, plan->buffer + (size_t)slot * (size_t)plan->size, plan->done - (uint64_t)(plan->window - slot));
  }
  MPI_Send(&plan->done, 1, MPI_UINT64_T, TARGET, END_TAG, MPI_COMM_WORLD);
}

static void serve(struct plan *plan) {
  MPI_Recv(&plan->done, 1, MPI_UINT64_T, ORIGIN, END_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_sync(plan->win);
  if (plan->atomic) {
    check_word(plan, plan->memory, plan->done);
  } else if (!plan->is_get) {
    check_pattern(plan, plan->memory);
  }
}

static int one_of(const char *word, const char *first, const char *second) {
  if (strcmp(word, first) == 0) return 1;
  if (strcmp(word, second) != 0) usage();
  return 0;
}

static struct plan read_plan(char **argv) {
  struct plan plan = {.operation = argv[1], .latency = one_of(argv[2], "latency", "rate")};
  plan.mapped = one_of(argv[3], "mapped", "registered");
  plan.is_get = strcmp(argv[1], "get") == 0;
  plan.atomic = !plan.is_get && strcmp(argv[1], "put") != 0;
  plan.is_add = plan.atomic && one_of(argv[1], "fetch-and-add", "compare-and-swap");
  plan.window = plan.latency ? 1 : number(argv[4], 1, usage);
  plan.size = number(argv[5], 1, usage);
  plan.batches = number(argv[6], 1, usage);
  const int iterations = number(argv[7], 1, usage);
  if (plan.atomic && plan.size != (int)sizeof(uint32_t) && plan.size != (int)sizeof(uint64_t)) usage();
  plan.word = plan.size == (int)sizeof(uint32_t) ? MPI_UINT32_T : MPI_UINT64_T;
  plan.rounds = iterations < plan.window ? 1 : iterations / plan.window;
  plan.slots = (size_t)plan.size * (size_t)plan.window;
  return plan;
}

/* Makes the window. The origin's own part of it is empty. */
static void make_window(struct plan *plan) {
  const size_t length = plan->rank == TARGET ? plan->slots : 0;
  plan->buffer = malloc(plan->slots);
  plan->operands = malloc((size_t)plan->window * sizeof *plan->operands);
  plan->compares = malloc((size_t)plan->window * sizeof *plan->compares);
  if (plan->mapped) {
    MPI_Win_allocate((MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &plan->memory, &plan->win);
  } else {
    plan->memory = malloc(length + 1);
    if (plan->memory == NULL) fail(plan, "no memory");
    MPI_Win_create(plan->memory, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &plan->win);
  }
  if (plan->buffer == NULL || plan->operands == NULL || plan->compares == NULL) fail(plan, "no memory");
  MPI_Win_lock_all(0, plan->win);
  memset(plan->buffer, plan->is_get ? 0 : PATTERN, plan->slots);
  memset(plan->memory, plan->is_get ? PATTERN : 0, length);
  MPI_Win_sync(plan->win);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  int ranks;
  if (argc != 10) usage();
  struct plan plan = read_plan(argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    fprintf(stderr, "mpi_rma: two ranks are needed, not %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  pin("mpi_rma", number(argv[8 + plan.rank], 0, usage));
  make_window(&plan);
  plan.rank == ORIGIN ? measure(&plan) : serve(&plan);
  MPI_Win_unlock_all(plan.win);
  MPI_Win_free(&plan.win);
  MPI_Finalize();
  free(plan.buffer);
  free(plan.operands);
  free(plan.compares);
  if (!plan.mapped) free(plan.memory);
  return 0;
}
