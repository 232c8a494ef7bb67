/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_rma_mt.c - one-sided operations of several threads in any MPI, in the patterns of RMA-MT: threads, operation,
 * synchronisation, targets.
 *
 * rma_mt.py builds it with each MPI's compiler and starts it. Each thread of an origin accesses its own part of the
 * target's memory. One thread of a rank, the main one, is thread 0 and does all synchronisation but flushes. Threads
 * wait in a barrier that never sleeps inside a batch, and sleep between batches.
 *
 * mpi_rma_mt put|get lock_all_flush|lock|fence|pscw <threads> <window> <size> <batches> <rounds> [one|ring|halo
 * [allocate|create [<cores>|none]]]
 *
 * A batch has <rounds>, and in each of them every thread posts <window> operations of <size> bytes.
 *   lock_all_flush: MPI_Win_lock_all once; each thread ends its window by MPI_Win_flush, and waits for no other thread
 *   lock, fence, pscw: the main thread opens and ends an epoch around the window of all threads, once a round
 *   one: rank 0 accesses rank 1, which only takes part in the synchronisation, or else waits inside MPI
 *   ring: each rank accesses the next one; halo: its four neighbours in a torus, in turn
 * Thread t of rank r runs on core number r + t * ranks of the list, which starts again at its end.
 *
 * Rank 0 prints one line: of each batch the operations/s of all threads of all ranks, until the last of them is done.
 * The data of all batches is checked. One more round with other data follows, and is checked, too.
 *
 * Exit codes: 1 for wrong data, 2 for bad arguments, 3 if the MPI does not provide MPI_THREAD_MULTIPLE.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "mpi_common.h"

enum { MOST_THREADS = 256, MOST_CORES = 1024, DIRECTIONS = 4, SPINS = 64, NO_THREADS = 3 };
enum sync { LOCK_ALL_FLUSH, LOCK, FENCE, PSCW };
enum pattern { ONE, RING, HALO };

/* A barrier of threads that yield instead of sleeping. */
struct thread_barrier {
  atomic_int arrived;
  atomic_uint phase;
  double last_us; /* when the last thread arrived; read by threads that have left the barrier */
};

struct plan {
  int is_get, threads, window, size, batches, rounds, created, cores, rank, ranks;
  enum sync sync;
  enum pattern pattern;
  int core[MOST_CORES];
  int is_origin, is_target;
  int directions;                            /* 0 on a rank that is no origin */
  int towards[DIRECTIONS], from[DIRECTIONS]; /* by direction: the target, and the origin that has this rank */
  int targets[DIRECTIONS], target_count;     /* without repetition */
  MPI_Group target_group, origin_group;      /* for pscw */
  size_t length;                             /* bytes of the operations of all threads' windows */
  unsigned seed;                             /* of the data */
  unsigned char *buffer, *memory;            /* of the origin; of the target */
  MPI_Win win;
  struct thread_barrier barrier;
  pthread_barrier_t gate; /* before and after a batch */
};

struct worker {
  struct plan *plan;
  int index;
  double end_us;
  pthread_t thread;
};

static const char *reading; /* the number of the command line that is being parsed, or NULL */

static void usage(void) {
  if (reading != NULL) fprintf(stderr, "mpi_rma_mt: %s: not a whole number of the range\n", reading);
  fprintf(stderr,
          "mpi_rma_mt: expected: put|get lock_all_flush|lock|fence|pscw <threads> <window> <size> <batches> <rounds> "
          "[one|ring|halo [allocate|create [<cores>|none]]]\n");
  exit(2);
}

static void reject(const char *what, const char *found) {
  fprintf(stderr, "mpi_rma_mt: %s: %s\n", what, found);
  usage();
}

static void fail(const struct plan *plan, const char *format, ...) {
  va_list values;
  fprintf(stderr, "mpi_rma_mt: rank %d: ", plan->rank);
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Waits for all threads of this rank. */
static void cross_barrier(struct plan *plan) {
  struct thread_barrier *const barrier = &plan->barrier;
  const unsigned phase = atomic_load_explicit(&barrier->phase, memory_order_relaxed);
  /* acq_rel: the last thread sees what all have written before they arrived */
  if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 == plan->threads) {
    barrier->last_us = now_us();
    atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&barrier->phase, phase + 1, memory_order_release); /* pairs with the acquire below */
    return;
  }
  for (int i = 0; atomic_load_explicit(&barrier->phase, memory_order_acquire) == phase; ++i) {
    if (i >= SPINS) sched_yield();
  }
}

/* Opens the epochs of a round. Called by the main thread, also of a rank that is only a target. */
static void open_epochs(const struct plan *plan, int round) {
  if (plan->sync == FENCE && round == 0) MPI_Win_fence(MPI_MODE_NOPRECEDE, plan->win);
  if (plan->sync == PSCW && plan->is_target) MPI_Win_post(plan->origin_group, 0, plan->win);
  if (plan->sync == PSCW && plan->is_origin) MPI_Win_start(plan->target_group, 0, plan->win);
  for (int i = 0; plan->sync == LOCK && i < plan->target_count; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, plan->targets[i], 0, plan->win);
  }
}

static void close_epochs(const struct plan *plan, int round) {
  if (plan->sync == FENCE) MPI_Win_fence(round + 1 == plan->rounds ? MPI_MODE_NOSUCCEED : 0, plan->win);
  if (plan->sync == PSCW && plan->is_origin) MPI_Win_complete(plan->win);
  if (plan->sync == PSCW && plan->is_target) MPI_Win_wait(plan->win);
  for (int i = 0; plan->sync == LOCK && i < plan->target_count; ++i) MPI_Win_unlock(plan->targets[i], plan->win);
}

/* Posts a window. Operation i goes to direction i modulo their number, so no two origins take one place. */
static void post(const struct plan *plan, int thread) {
  const int first = thread * plan->window;
  for (int i = 0; i < plan->window; ++i) {
    const size_t place = (size_t)(first + i) * (size_t)plan->size;
    const int target = plan->towards[i % plan->directions];
    if (plan->is_get) {
      MPI_Get(plan->buffer + place, plan->size, MPI_BYTE, target, (MPI_Aint)place, plan->size, MPI_BYTE, plan->win);
    } else {
      MPI_Put(plan->buffer + place, plan->size, MPI_BYTE, target, (MPI_Aint)place, plan->size, MPI_BYTE, plan->win);
    }
  }
}

/* Does a thread's part of a batch. */
static void batch(struct worker *worker) {
  struct plan *const plan = worker->plan;
  for (int round = 0; round < plan->rounds; ++round) {
    if (plan->sync == LOCK_ALL_FLUSH) {
      post(plan, worker->index);
      for (int i = 0; i < plan->target_count; ++i) MPI_Win_flush(plan->targets[i], plan->win);
      continue;
    }
    if (worker->index == 0) open_epochs(plan, round);
    cross_barrier(plan);
    post(plan, worker->index);
    cross_barrier(plan);
    if (worker->index == 0) close_epochs(plan, round);
  }
  worker->end_us = now_us();
}

static void place_thread(const struct plan *plan, int thread) {
  if (plan->cores > 0) pin("mpi_rma_mt", plan->core[(plan->rank + thread * plan->ranks) % plan->cores]);
}

/* The life of each thread but the main one: the warm-up, the batches, and the last round. */
static void *work(void *argument) {
  struct worker *const worker = argument;
  place_thread(worker->plan, worker->index);
  for (int i = 0; i < worker->plan->batches + 2; ++i) {
    pthread_barrier_wait(&worker->plan->gate);
    cross_barrier(worker->plan);
    batch(worker);
    pthread_barrier_wait(&worker->plan->gate);
  }
  return NULL;
}

/* Returns the us of this rank's threads, from when all were ready to when the last one was done. */
static double run_threads(struct plan *plan, struct worker *workers) {
  pthread_barrier_wait(&plan->gate);
  cross_barrier(plan);
  const double start = plan->barrier.last_us;
  batch(&workers[0]);
  pthread_barrier_wait(&plan->gate);
  double end = start;
  for (int i = 0; i < plan->threads; ++i) end = workers[i].end_us > end ? workers[i].end_us : end;
  return end - start;
}

/* Returns operations/s at rank 0. A rank that is only a target waits in the collective calls of the next batch. */
static double sample(struct plan *plan, struct worker *workers) {
  double us = 0, most_us = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (plan->is_origin) {
    us = run_threads(plan, workers);
  } else {
    for (int round = 0; round < plan->rounds; ++round) {
      open_epochs(plan, round);
      close_epochs(plan, round);
    }
  }
  MPI_Reduce(&us, &most_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const double origins = plan->pattern == ONE ? 1 : plan->ranks;
  return origins * plan->threads * plan->window * plan->rounds / (most_us * 1e-6);
}

/* Returns byte i of the data of a rank for one operation. */
static unsigned char byte_of(const struct plan *plan, int rank, int operation, int i) {
  uint32_t hash = plan->seed * 2654435761u ^ (uint32_t)rank * 2246822519u ^ (uint32_t)operation * 3266489917u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  hash ^= hash >> 13;
  return (unsigned char)((hash >> i % 4 * 8) + (uint32_t)(i / 4));
}

/* Lets this rank load and store its own part of the window. */
static void begin_local(const struct plan *plan) {
  if (plan->sync == LOCK_ALL_FLUSH) MPI_Win_sync(plan->win);
  if (plan->sync == LOCK) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, plan->rank, 0, plan->win);
}

static void end_local(const struct plan *plan) {
  if (plan->sync == LOCK_ALL_FLUSH) MPI_Win_sync(plan->win);
  if (plan->sync == LOCK) MPI_Win_unlock(plan->rank, plan->win);
}

/* Writes the data into the memory that is read, and clears the memory that is written. */
static void prepare(struct plan *plan, unsigned seed) {
  MPI_Barrier(MPI_COMM_WORLD); /* the others have checked what they have from here */
  plan->seed = seed;
  begin_local(plan);
  unsigned char *const data = plan->is_get ? plan->memory : plan->buffer;
  for (int operation = 0; operation < plan->threads * plan->window; ++operation) {
    for (int i = 0; i < plan->size && (plan->is_get ? plan->is_target : plan->is_origin); ++i) {
      data[(size_t)operation * (size_t)plan->size + (size_t)i] = byte_of(plan, plan->rank, operation, i);
    }
  }
  if (plan->is_get && plan->is_origin) memset(plan->buffer, 0, plan->length);
  if (!plan->is_get && plan->is_target) memset(plan->memory, 0, plan->length);
  end_local(plan);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Checks what this rank has got, or what others have put here. */
static void check(const struct plan *plan) {
  const int here = plan->is_get ? plan->is_origin : plan->is_target;
  const int *const sources = plan->is_get ? plan->towards : plan->from;
  const unsigned char *const data = plan->is_get ? plan->buffer : plan->memory;
  const int directions = plan->pattern == HALO ? DIRECTIONS : 1;
  MPI_Barrier(MPI_COMM_WORLD); /* all threads of all ranks are done */
  begin_local(plan);
  for (int operation = 0; here && operation < plan->threads * plan->window; ++operation) {
    const int slot = operation % plan->window, source = sources[slot % directions];
    for (int i = 0; i < plan->size; ++i) {
      const int found = data[(size_t)operation * (size_t)plan->size + (size_t)i];
      const int expected = byte_of(plan, source, operation, i);
      if (found == expected) continue;
      fail(plan, "wrong data: %s of thread %d, operation %d, byte %d of %d, from rank %d: found %d, expected %d",
           plan->is_get ? "get" : "put", operation / plan->window, slot, i, plan->size, source, found, expected);
    }
  }
  end_local(plan);
}

static int index_of(const char *word, const char *what, const char *const *known) {
  for (int i = 0; known[i] != NULL; ++i) {
    if (strcmp(word, known[i]) == 0) return i;
  }
  reject(what, word);
  return -1;
}

static int read_number(const char *name, const char *word, int least) {
  reading = name;
  const int value = number(word, least, usage);
  reading = NULL;
  return value;
}

static void read_cores(struct plan *plan, char *list) {
  if (strcmp(list, "none") == 0) return;
  for (char *rest = list; rest != NULL && plan->cores < MOST_CORES;) {
    const char *const word = strsep(&rest, ",");
    plan->core[plan->cores++] = read_number("<cores>", word, 0);
  }
}

static struct plan read_plan(int argc, char **argv) {
  static const char *const operations[] = {"put", "get", NULL};
  static const char *const syncs[] = {"lock_all_flush", "lock", "fence", "pscw", NULL};
  static const char *const patterns[] = {"one", "ring", "halo", NULL};
  static const char *const memories[] = {"allocate", "create", NULL};
  struct plan plan = {.is_get = index_of(argv[1], "unknown operation", operations), .cores = 0};
  plan.sync = (enum sync)index_of(argv[2], "unknown synchronisation", syncs);
  plan.threads = read_number("<threads>", argv[3], 1);
  plan.window = read_number("<window>", argv[4], 1);
  plan.size = read_number("<size>", argv[5], 1);
  plan.batches = read_number("<batches>", argv[6], 1);
  plan.rounds = read_number("<rounds>", argv[7], 1);
  if (argc > 8) plan.pattern = (enum pattern)index_of(argv[8], "unknown target", patterns);
  if (argc > 9) plan.created = index_of(argv[9], "unknown memory", memories);
  if (argc > 10) read_cores(&plan, argv[10]);
  if (plan.threads > MOST_THREADS) reject("more than 256 threads", argv[3]);
  if (plan.pattern == HALO && plan.window < DIRECTIONS) reject("a window below 4, the number of neighbours", argv[4]);
  if (plan.window > (1 << 30) / plan.threads) reject("too many operations in the windows of all threads", argv[4]);
  plan.length = (size_t)plan.threads * (size_t)plan.window * (size_t)plan.size;
  return plan;
}

/* Finds the ranks that this one accesses, and those that access it. */
static void find_neighbours(struct plan *plan) {
  const int rank = plan->rank, ranks = plan->ranks;
  plan->is_origin = plan->pattern != ONE || rank == 0;
  plan->is_target = plan->pattern != ONE || rank == 1;
  if (plan->pattern == ONE) {
    plan->towards[0] = 1;
    plan->from[0] = 0;
  } else if (plan->pattern == RING) {
    plan->towards[0] = (rank + 1) % ranks;
    plan->from[0] = (rank + ranks - 1) % ranks;
  } else {
    int rows = 1;
    for (int i = 2; i * i <= ranks; ++i) rows = ranks % i == 0 ? i : rows;
    const int columns = ranks / rows, row = rank / columns, column = rank % columns;
    plan->towards[0] = row * columns + (column + 1) % columns;
    plan->towards[1] = row * columns + (column + columns - 1) % columns;
    plan->towards[2] = (row + 1) % rows * columns + column;
    plan->towards[3] = (row + rows - 1) % rows * columns + column;
    for (int i = 0; i < DIRECTIONS; ++i) plan->from[i] = plan->towards[i ^ 1];
  }
  plan->directions = !plan->is_origin ? 0 : plan->pattern == HALO ? DIRECTIONS : 1;
  for (int i = 0; i < plan->directions; ++i) {
    int known = 0;
    while (known < plan->target_count && plan->targets[known] != plan->towards[i]) ++known;
    if (known == plan->target_count) plan->targets[plan->target_count++] = plan->towards[i];
  }
}

/* Makes the groups of pscw. In a torus the origins of a rank are its targets. */
static void make_groups(struct plan *plan) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int *const origins = plan->pattern == HALO ? plan->targets : plan->from;
  MPI_Group_incl(world, plan->target_count, plan->targets, &plan->target_group);
  MPI_Group_incl(world, plan->pattern == HALO ? plan->target_count : plan->is_target, origins, &plan->origin_group);
  MPI_Group_free(&world);
}

/* Makes the window. It is empty on a rank that is no target. */
static void make_window(struct plan *plan) {
  const size_t length = plan->is_target ? plan->length : 0;
  plan->buffer = malloc(plan->is_origin ? plan->length : 1);
  if (plan->created) {
    plan->memory = malloc(length + 1);
    if (plan->memory == NULL) fail(plan, "no memory for a window of %zu bytes", length);
    MPI_Win_create(plan->memory, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &plan->win);
  } else {
    MPI_Win_allocate((MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &plan->memory, &plan->win);
  }
  if (plan->buffer == NULL) fail(plan, "no memory for %zu bytes", plan->length);
  if (plan->sync == LOCK_ALL_FLUSH) MPI_Win_lock_all(0, plan->win);
}

static void start_threads(struct plan *plan, struct worker *workers) {
  pthread_barrier_init(&plan->gate, NULL, (unsigned)plan->threads);
  place_thread(plan, 0);
  for (int i = 0; i < plan->threads; ++i) {
    workers[i] = (struct worker){.plan = plan, .index = i};
    if (i == 0) continue; /* the main thread */
    const int error = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    if (error != 0) fail(plan, "cannot start thread %d: %s", i, strerror(error));
  }
}

static void measure(struct plan *plan, struct worker *workers) {
  prepare(plan, 1);
  sample(plan, workers); /* warm-up */
  for (int i = 0; i < plan->batches; ++i) {
    const double rate = sample(plan, workers);
    if (plan->rank == 0) printf("%.9g%s", rate, i + 1 < plan->batches ? " " : "\n");
  }
  check(plan);
  prepare(plan, 2);
  plan->rounds = 1;
  sample(plan, workers);
  check(plan);
}

static void finish(struct plan *plan, const struct worker *workers) {
  for (int i = 1; plan->is_origin && i < plan->threads; ++i) pthread_join(workers[i].thread, NULL);
  if (plan->is_origin) pthread_barrier_destroy(&plan->gate);
  if (plan->sync == LOCK_ALL_FLUSH) MPI_Win_unlock_all(plan->win);
  MPI_Win_free(&plan->win);
  MPI_Group_free(&plan->target_group);
  MPI_Group_free(&plan->origin_group);
  MPI_Finalize();
  free(plan->buffer);
  if (plan->created) free(plan->memory);
}

int main(int argc, char **argv) {
  static struct worker workers[MOST_THREADS];
  int provided;
  if (argc < 8 || argc > 11) usage();
  struct plan plan = read_plan(argc, argv);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &plan.ranks);
  const int least = plan.pattern == HALO ? DIRECTIONS : 2;
  const int wrong = plan.ranks < least || (plan.pattern == ONE && plan.ranks > 2);
  if (provided < MPI_THREAD_MULTIPLE || wrong) {
    if (plan.rank == 0 && wrong) {
      fprintf(stderr, "mpi_rma_mt: %d ranks; expected: one: 2 ranks; ring: at least 2; halo: at least 4\n", plan.ranks);
    } else if (plan.rank == 0) {
      fprintf(stderr, "mpi_rma_mt: MPI_THREAD_MULTIPLE is not provided\n");
    }
    MPI_Finalize();
    return wrong ? 2 : NO_THREADS;
  }
  find_neighbours(&plan);
  make_groups(&plan);
  make_window(&plan);
  if (plan.is_origin) {
    start_threads(&plan, workers);
  } else {
    place_thread(&plan, 0);
  }
  measure(&plan, workers);
  finish(&plan, workers);
  return 0;
}
