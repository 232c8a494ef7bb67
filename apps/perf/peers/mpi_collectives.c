/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_collectives.c - the cost of blocking collectives, and of exchanges with two neighbours, with any MPI.
 *
 * collectives.py builds it with each MPI's compiler. One thread. A time is that of the slowest rank over a row of calls
 * without a barrier between them. A root may thus run ahead if the operation allows it. The first calls of each case
 * are not timed, and the last one of those is checked.
 *
 * mpi_collectives <batches> <operations> <sizes> <cores>     lists with commas
 *
 * The neighbours are those of a ring. An exchange sends a block to each: by four requests that each call makes, by
 * persistent or partitioned ones (four partitions, if a block can be divided), or by a neighbourhood collective.
 *
 * Sizes are bytes of one block, multiples of 8. Rank r is pinned to core r of the list, which is used again from its
 * beginning if there are more ranks. Rank 0 prints a line for each operation and size: both, and us per call of each
 * batch.
 */
#define _GNU_SOURCE
#include <stdint.h>

#include "mpi_common.h"

enum { WARM_UP = 5, PARTITIONS = 4 };

struct plan {
  int rank, ranks, count; /* words of a block */
  int64_t *in, *out;      /* a block for each rank; at least two */
  MPI_Comm ring;          /* the neighbours are those before and behind */
  int before, behind;
  MPI_Request *requests; /* of an exchange: two receives, two sends */
};

static void fail(const char *what, const char *which) {
  fprintf(stderr, "mpi_collectives: %s%s\n", what, which);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void barrier(const struct plan *p) {
  (void)p;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(const struct plan *p) {
  MPI_Bcast(p->rank == 0 ? p->in : p->out, p->count, MPI_INT64_T, 0, MPI_COMM_WORLD);
}
static void reduce(const struct plan *p) {
  MPI_Reduce(p->in, p->out, p->count, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduce(const struct plan *p) {
  MPI_Allreduce(p->in, p->out, p->count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}
static void gather(const struct plan *p) {
  MPI_Gather(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, 0, MPI_COMM_WORLD);
}
static void scatter(const struct plan *p) {
  MPI_Scatter(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, 0, MPI_COMM_WORLD);
}
static void allgather(const struct plan *p) {
  MPI_Allgather(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, MPI_COMM_WORLD);
}
static void alltoall(const struct plan *p) {
  MPI_Alltoall(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, MPI_COMM_WORLD);
}
static void reduce_scatter(const struct plan *p) {
  MPI_Reduce_scatter_block(p->in, p->out, p->count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}
static void scan(const struct plan *p) { MPI_Scan(p->in, p->out, p->count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }

/* Block 0 goes to the rank before and comes from there, block 1 to and from the rank behind. A message that goes
 * forward has tag 1, one that goes back has tag 0: with two ranks, both neighbours are the same. */
static void exchange(const struct plan *p) {
  MPI_Irecv(p->out, p->count, MPI_INT64_T, p->before, 1, p->ring, &p->requests[0]);
  MPI_Irecv(p->out + p->count, p->count, MPI_INT64_T, p->behind, 0, p->ring, &p->requests[1]);
  MPI_Isend(p->in, p->count, MPI_INT64_T, p->before, 0, p->ring, &p->requests[2]);
  MPI_Isend(p->in + p->count, p->count, MPI_INT64_T, p->behind, 1, p->ring, &p->requests[3]);
  MPI_Waitall(4, p->requests, MPI_STATUSES_IGNORE);
}

static void begin_persistent(struct plan *p) {
  MPI_Recv_init(p->out, p->count, MPI_INT64_T, p->before, 1, p->ring, &p->requests[0]);
  MPI_Recv_init(p->out + p->count, p->count, MPI_INT64_T, p->behind, 0, p->ring, &p->requests[1]);
  MPI_Send_init(p->in, p->count, MPI_INT64_T, p->before, 0, p->ring, &p->requests[2]);
  MPI_Send_init(p->in + p->count, p->count, MPI_INT64_T, p->behind, 1, p->ring, &p->requests[3]);
}
static void exchange_persistent(const struct plan *p) {
  MPI_Startall(4, p->requests);
  MPI_Waitall(4, p->requests, MPI_STATUSES_IGNORE);
}

static void free_requests(struct plan *p) {
  for (int i = 0; i < 4; ++i) MPI_Request_free(&p->requests[i]);
}

#if MPI_VERSION >= 4
static int partitions_of(const struct plan *p) { return p->count % PARTITIONS == 0 ? PARTITIONS : 1; }

static void begin_partitioned(struct plan *p) {
  const int parts = partitions_of(p), count = p->count / parts;
  MPI_Info none = MPI_INFO_NULL;
  MPI_Precv_init(p->out, parts, count, MPI_INT64_T, p->before, 1, p->ring, none, &p->requests[0]);
  MPI_Precv_init(p->out + p->count, parts, count, MPI_INT64_T, p->behind, 0, p->ring, none, &p->requests[1]);
  MPI_Psend_init(p->in, parts, count, MPI_INT64_T, p->before, 0, p->ring, none, &p->requests[2]);
  MPI_Psend_init(p->in + p->count, parts, count, MPI_INT64_T, p->behind, 1, p->ring, none, &p->requests[3]);
}
static void exchange_partitioned(const struct plan *p) {
  MPI_Startall(4, p->requests);
  for (int send = 2; send < 4; ++send) {
    for (int part = 0; part < partitions_of(p); ++part) MPI_Pready(part, p->requests[send]);
  }
  MPI_Waitall(4, p->requests, MPI_STATUSES_IGNORE);
}
#endif

static void neighbor_alltoall(const struct plan *p) {
  MPI_Neighbor_alltoall(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, p->ring);
}
static void neighbor_allgather(const struct plan *p) {
  MPI_Neighbor_allgather(p->in, p->count, MPI_INT64_T, p->out, p->count, MPI_INT64_T, p->ring);
}

/* Rank r has in[i] = 1000 r + i / count in word i. The sum of a block over all ranks, and the block of each rank, are
 * thus known. */
static const struct operation {
  const char *name;
  void (*call)(const struct plan *);
  enum { NOTHING, SAME, SUM, MY_SUM, PREFIX, ALL, EXCHANGED, FROM_NEIGHBORS, OF_NEIGHBORS } result;
  int at_root;                  /* only there */
  void (*begin)(struct plan *); /* makes requests; may be NULL */
} operations[] = {
    {"barrier", barrier, NOTHING, 0, NULL},
    {"bcast", bcast, SAME, 0, NULL},
    {"reduce", reduce, SUM, 1, NULL},
    {"allreduce", allreduce, SUM, 0, NULL},
    {"gather", gather, ALL, 1, NULL},
    {"scatter", scatter, EXCHANGED, 0, NULL},
    {"allgather", allgather, ALL, 0, NULL},
    {"alltoall", alltoall, EXCHANGED, 0, NULL},
    {"reduce_scatter", reduce_scatter, MY_SUM, 0, NULL},
    {"scan", scan, PREFIX, 0, NULL},
    {"exchange", exchange, FROM_NEIGHBORS, 0, NULL},
    {"exchange_persistent", exchange_persistent, FROM_NEIGHBORS, 0, begin_persistent},
#if MPI_VERSION >= 4
    {"exchange_partitioned", exchange_partitioned, FROM_NEIGHBORS, 0, begin_partitioned},
#endif
    {"neighbor_alltoall", neighbor_alltoall, FROM_NEIGHBORS, 0, NULL},
    {"neighbor_allgather", neighbor_allgather, OF_NEIGHBORS, 0, NULL},
};

/* Returns NULL for an operation that this MPI does not have. */
static const struct operation *find(const char *name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    if (strcmp(operations[i].name, name) == 0) return &operations[i];
  }
  if (strcmp(name, "exchange_partitioned") != 0) fail("no such operation: ", name);
  return NULL;
}

/* Returns word 0 of block `block` of the result. */
static int64_t expected(const struct plan *p, const struct operation *what, int block) {
  const int64_t all = 1000 * (int64_t)p->ranks * (p->ranks - 1) / 2;
  switch (what->result) {
    case SUM:
      return all;
    case MY_SUM:
      return all + (int64_t)p->ranks * p->rank;
    case PREFIX:
      return 1000 * (int64_t)p->rank * (p->rank + 1) / 2;
    case ALL:
      return 1000 * (int64_t)block;
    case EXCHANGED:
      return strcmp(what->name, "alltoall") == 0 ? 1000 * (int64_t)block + p->rank : p->rank;
    case FROM_NEIGHBORS:
      return block == 0 ? 1000 * (int64_t)p->before + 1 : 1000 * (int64_t)p->behind;
    case OF_NEIGHBORS:
      return 1000 * (int64_t)(block == 0 ? p->before : p->behind);
    default:
      return 0;
  }
}

static int blocks_of(const struct plan *p, const struct operation *what) {
  if (what->result == FROM_NEIGHBORS || what->result == OF_NEIGHBORS) return 2;
  return what->result == ALL || strcmp(what->name, "alltoall") == 0 ? p->ranks : 1;
}

static void check(const struct plan *p, const struct operation *what) {
  if (what->result == NOTHING || (what->at_root && p->rank != 0) || (what->result == SAME && p->rank == 0)) return;
  const int blocks = blocks_of(p, what);
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i<p->count; i += p->count> 1 ? p->count - 1 : 1) {
      const int64_t found = p->out[(size_t)block * (size_t)p->count + (size_t)i];
      if (found != expected(p, what, block)) fail("a wrong result of ", what->name);
    }
  }
}

/* Returns how many blocks there is memory for: one for each rank, at least two. */
static size_t blocks_there(const struct plan *p) { return p->ranks < 2 ? 2 : (size_t)p->ranks; }

static void measure(struct plan *p, const struct operation *what, int size, int batches) {
  const int calls = size <= 1024 ? 400 : size <= 65536 ? 100 : size <= 1 << 20 ? 20 : 5;
  p->count = size / 8;
  for (size_t i = 0; i < (size_t)p->count * blocks_there(p); ++i) {
    p->in[i] = 1000 * (int64_t)p->rank + (int64_t)(i / (size_t)p->count);
    p->out[i] = -1;
  }
  if (what->begin != NULL) what->begin(p);
  for (int i = 0; i < WARM_UP; ++i) what->call(p);
  check(p, what);
  if (p->rank == 0) printf("%s %d", what->name, size);
  for (int batch = 0; batch < batches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_us();
    for (int i = 0; i < calls; ++i) what->call(p);
    double time = (now_us() - begin) / calls, slowest = 0;
    MPI_Reduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (p->rank == 0) printf(" %.9g", slowest);
  }
  if (p->rank == 0) printf("\n");
  if (what->begin != NULL) free_requests(p);
}

static void make_ring(struct plan *p) {
  MPI_Cart_create(MPI_COMM_WORLD, 1, &p->ranks, (int[]){1}, 0, &p->ring);
  MPI_Cart_shift(p->ring, 0, 1, &p->before, &p->behind);
}

static void usage(void) { fail("expected: <batches> <operations> <sizes> <cores>", ""); }

/* Pins equally many ranks to each core. Otherwise the kernel may let three share one core, and one have the other. */
static void pin_in_turn(int rank, char *cores) {
  int core[64], count = 0;
  char *next = NULL;
  for (char *word = strtok_r(cores, ",", &next); word != NULL && count < 64; word = strtok_r(NULL, ",", &next)) {
    core[count++] = number(word, 0, usage);
  }
  if (count == 0) usage();
  pin("mpi_collectives", core[rank % count]);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) usage();
  MPI_Request requests[4];
  struct plan plan = {.requests = requests};
  MPI_Comm_rank(MPI_COMM_WORLD, &plan.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &plan.ranks);
  pin_in_turn(plan.rank, argv[4]);
  make_ring(&plan);
  const int batches = number(argv[1], 1, usage);
  char *next_size = NULL, *next_name = NULL;
  for (char *size = strtok_r(argv[3], ",", &next_size); size != NULL; size = strtok_r(NULL, ",", &next_size)) {
    const int bytes = number(size, 8, usage);
    if (bytes % 8 != 0) fail("no multiple of 8: ", size);
    plan.in = malloc((size_t)bytes * blocks_there(&plan));
    plan.out = malloc((size_t)bytes * blocks_there(&plan));
    if (plan.in == NULL || plan.out == NULL) fail("no memory for blocks of ", size);
    char *const names = strdup(argv[2]);
    for (char *name = strtok_r(names, ",", &next_name); name != NULL; name = strtok_r(NULL, ",", &next_name)) {
      const struct operation *const what = find(name);
      if (what != NULL) measure(&plan, what, bytes, batches);
    }
    free(names);
    free(plan.in);
    free(plan.out);
  }
  MPI_Comm_free(&plan.ring);
  MPI_Finalize();
  return 0;
}
