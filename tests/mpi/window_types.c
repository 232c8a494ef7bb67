/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get of target data with gaps, on windows of every kind, against a plain list of the bytes that a type names.
 *
 * The types are random. All ranks make the same ones, from a seed that is printed and may be given as an argument. Each
 * rank accesses the part of the next one. Equal blocks at equal distances must be one operation of the engine.
 */
#include <stdint.h>
#include <time.h>

#include "check.h"

#ifdef CANELE_MPI
#include <canele_mpi.h>
#endif

enum { PART = 1 << 18, MOST = 1 << 17, ROUNDS = 100 };

/* What other libraries do wrong: see README.md. */
#ifdef OPEN_MPI
enum { HAS_ADJOINING = 0, HAS_SHORT_PUTS = 0 };
#else
enum { HAS_ADJOINING = 1, HAS_SHORT_PUTS = 1 };
#endif
#ifdef MPICH_VERSION
enum { HAS_REQUESTS = 0 };
#else
enum { HAS_REQUESTS = 1 };
#endif

static uint64_t random_;

/* Returns a random number from `low` to `high`. */
static int between(int low, int high) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return low + (int)(random_ % (uint64_t)(high - low + 1));
}

/* ---- types, and the bytes that they name */

struct shape {
  MPI_Datatype type;
  int count;
  int bytes;
  int at[MOST]; /* places of the bytes, in the order of the data */
};

static void add_blocks(struct shape *shape, int first, int count, int block, int stride) {
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < block; ++k) {
      CHECK(shape->bytes < MOST);
      shape->at[shape->bytes++] = first + i * stride + k;
    }
  }
}

static MPI_Datatype unit_of(int bytes) {
  MPI_Datatype unit;
  MPI_Type_contiguous(bytes, MPI_BYTE, &unit);
  return unit;
}

static MPI_Datatype resized(MPI_Datatype type, int extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  MPI_Type_free(&type);
  return made;
}

/* Numbers of a vector: now and then so many blocks that no packet has them all. */
struct vector {
  int count, block, stride;
};
static struct vector random_vector(void) {
  struct vector of = {between(1, 8) == 1 ? between(300, 800) : between(2, 30), between(1, 24), 0};
  of.stride = of.block + between(1, 24);
  return of;
}

static void make_vector(struct shape *shape) {
  const struct vector of = random_vector();
  const int unit = between(1, 2);
  MPI_Datatype element = unit_of(unit);
  MPI_Type_vector(of.count, of.block, of.stride, element, &shape->type);
  MPI_Type_free(&element);
  add_blocks(shape, 0, of.count, of.block * unit, of.stride * unit);
}

static void make_hvector(struct shape *shape) {
  const struct vector of = random_vector();
  MPI_Type_create_hvector(of.count, of.block, of.stride, MPI_BYTE, &shape->type);
  add_blocks(shape, 0, of.count, of.block, of.stride);
}

/* Several blocks, each an element of the call. */
static void make_resized(struct shape *shape) {
  const struct vector of = random_vector();
  shape->type = resized(unit_of(of.block), of.stride);
  shape->count = of.count;
  add_blocks(shape, 0, of.count, of.block, of.stride);
}

static void make_matrix_block(struct shape *shape, int order) {
  const struct vector of = random_vector();
  const int first[] = {between(0, 5), between(0, of.stride - of.block)};
  const int sizes[] = {first[0] + of.count + between(0, 5), of.stride}, part[] = {of.count, of.block};
  const int sizes_of_columns[] = {sizes[1], sizes[0]}, part_of_columns[] = {part[1], part[0]},
            first_of_columns[] = {first[1], first[0]};
  if (order == MPI_ORDER_C) {
    MPI_Type_create_subarray(2, sizes, part, first, order, MPI_BYTE, &shape->type);
  } else {
    MPI_Type_create_subarray(2, sizes_of_columns, part_of_columns, first_of_columns, order, MPI_BYTE, &shape->type);
  }
  add_blocks(shape, first[0] * of.stride + first[1], of.count, of.block, of.stride);
}
static void make_rows(struct shape *shape) { make_matrix_block(shape, MPI_ORDER_C); }
static void make_columns(struct shape *shape) { make_matrix_block(shape, MPI_ORDER_FORTRAN); }

/* Vectors that go on where the one before has ended: nested types that are one pattern. */
static void make_nested(struct shape *shape) {
  const struct vector of = random_vector();
  const int times = between(1, 3), extent = of.count * of.stride;
  MPI_Datatype vector, whole, pair;
  MPI_Type_vector(of.count, of.block, of.stride, MPI_BYTE, &vector);
  MPI_Type_create_hvector(2, 1, extent, vector, &pair);
  MPI_Type_free(&vector);
  whole = resized(pair, 2 * extent);
  MPI_Type_contiguous(times, whole, &shape->type);
  MPI_Type_free(&whole);
  add_blocks(shape, 0, 2 * times * of.count, of.block, of.stride);
}

/* Blocks of different lengths. */
static void make_indexed(struct shape *shape) {
  enum { BLOCKS = 20 };
  int lengths[BLOCKS], places[BLOCKS], end = 0;
  for (int i = 0; i < BLOCKS; ++i) {
    lengths[i] = between(1, 40);
    places[i] = end + between(0, 20);
    end = places[i] + lengths[i];
    add_blocks(shape, places[i], 1, lengths[i], 0);
  }
  MPI_Type_indexed(BLOCKS, lengths, places, MPI_BYTE, &shape->type);
}

/* Vectors of which the next begins at the end of the last block: another distance there. */
static void make_vectors(struct shape *shape) {
  const struct vector of = random_vector();
  MPI_Type_vector(of.count, of.block, of.stride, MPI_BYTE, &shape->type);
  shape->count = between(2, 4);
  for (int i = 0; i < shape->count; ++i)
    add_blocks(shape, i * ((of.count - 1) * of.stride + of.block), of.count, of.block, of.stride);
}

static void make_cuboid(struct shape *shape) {
  const int sizes[] = {5, between(6, 12), between(10, 30)}, part[] = {3, 4, between(1, 8)}, first[] = {1, 1, 2};
  MPI_Type_create_subarray(3, sizes, part, first, MPI_ORDER_C, MPI_BYTE, &shape->type);
  for (int i = 0; i < part[0]; ++i)
    add_blocks(shape, ((first[0] + i) * sizes[1] + first[1]) * sizes[2] + first[2], part[1], part[2], sizes[2]);
}

/* The last block comes first. */
static void make_descending(struct shape *shape) {
  const struct vector of = random_vector();
  MPI_Type_create_hvector(of.count, of.block, -of.stride, MPI_BYTE, &shape->type);
  add_blocks(shape, 0, of.count, of.block, -of.stride);
}

static const struct {
  void (*make)(struct shape *shape);
  int is_regular; /* one operation does */
} kinds_[] = {{make_vector, 1}, {make_hvector, 1}, {make_resized, 1}, {make_rows, 1},   {make_columns, 1},
              {make_nested, 1}, {make_indexed, 0}, {make_vectors, 0}, {make_cuboid, 0}, {make_descending, 0}};
enum { KINDS = sizeof kinds_ / sizeof kinds_[0] };

/* ---- windows whose part of each rank has PART bytes */

enum flavor { CREATED, ALLOCATED, SHARED, DYNAMIC, ADJOINING, FLAVORS };

struct part {
  MPI_Win window;
  unsigned char *memory;
  unsigned char *own; /* NULL: the window has allocated the memory */
  MPI_Aint base;      /* displacement of the first byte of the next rank's part */
  enum flavor flavor;
};

static void attach(struct part *part) {
  const int cut = part->flavor == ADJOINING ? PART / 3 + 5 : PART;
  MPI_Aint mine, *all = malloc(sizeof *all * (size_t)size_);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &part->window);
  MPI_Win_attach(part->window, part->memory, cut);
  if (cut < PART) MPI_Win_attach(part->window, part->memory + cut, PART - cut);
  MPI_Get_address(part->memory, &mine);
  MPI_Allgather(&mine, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD);
  part->base = all[(rank_ + 1) % size_];
  free(all);
}

static void make(enum flavor flavor, struct part *part) {
  memset(part, 0, sizeof *part);
  part->flavor = flavor;
  if (flavor == ALLOCATED) {
    MPI_Win_allocate(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part->memory, &part->window);
  } else if (flavor == SHARED) {
    MPI_Win_allocate_shared(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part->memory, &part->window);
  } else {
    part->memory = part->own = malloc(PART);
    if (flavor == CREATED) MPI_Win_create(part->own, PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part->window);
    if (flavor != CREATED) attach(part);
  }
}

static void drop(struct part *part) {
  MPI_Win_free(&part->window);
  free(part->own);
}

/* ---- the test */

/* Returns how many operations of this rank the engine has begun. */
static uint64_t operations(void) {
  uint64_t value = 0;
#ifdef CANELE_MPI
  canele_engine_t *engine = NULL;
  CHECK_EQ(canele_mpi_engine(&engine), MPI_SUCCESS);
  for (int i = 0; i < canele_counter_count(); ++i) {
    if (strcmp(canele_counter_name(i), "accesses_sent") == 0)
      CHECK_EQ(canele_counter_read(engine, i, -1, NULL, &value), CANELE_OK);
  }
#endif
  return value;
}

/* Checks the operations of a put or get and the flush behind it. */
static void check_operations(const struct part *part, int is_regular, uint64_t before) {
#ifdef CANELE_MPI
  enum { OPERATION_AND_FLUSH = 2, READS_OF_A_TABLE = 4 };
  const uint64_t begun = operations() - before;
  if (!is_regular || part->flavor == ADJOINING) return;
  CHECK(begun <= OPERATION_AND_FLUSH + (part->flavor == DYNAMIC ? READS_OF_A_TABLE : 0));
  if (part->flavor == CREATED) CHECK(begun >= 1); /* no rank maps this memory */
#else
  (void)part, (void)is_regular, (void)before;
#endif
}

/* Data of the program: one block, or every second byte. */
struct origin {
  unsigned char *memory;
  MPI_Datatype type;
  int step;
};

static struct origin make_origin(int bytes) {
  struct origin origin = {calloc((size_t)bytes, 2), unit_of(bytes), between(1, 2)};
  if (origin.step == 2) {
    MPI_Type_free(&origin.type);
    MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &origin.type);
  }
  MPI_Type_commit(&origin.type);
  return origin;
}

static void drop_origin(struct origin *origin) {
  MPI_Type_free(&origin->type);
  free(origin->memory);
}

/* One put into the next rank's part. `bytes` may be fewer than the type has. */
static void put(const struct part *part, const struct shape *shape, MPI_Aint place, int bytes, int is_regular,
                int seed) {
  const int next = (rank_ + 1) % size_;
  struct origin from = make_origin(bytes);
  MPI_Request request;
  for (int i = 0; i < bytes; ++i) from.memory[i * from.step] = pattern((size_t)i, seed + rank_);
  const uint64_t before = operations();
  if (between(0, HAS_REQUESTS) == 0) {
    MPI_Put(from.memory, 1, from.type, next, part->base + place, shape->count, shape->type, part->window);
  } else {
    MPI_Rput(from.memory, 1, from.type, next, part->base + place, shape->count, shape->type, part->window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Win_flush(next, part->window);
  check_operations(part, is_regular, before);
  drop_origin(&from);
}

/* Gets what the put has written. */
static void get(const struct part *part, const struct shape *shape, MPI_Aint place, int bytes, int is_regular,
                int seed) {
  const int next = (rank_ + 1) % size_;
  struct origin into = make_origin(shape->bytes);
  MPI_Request request;
  const uint64_t before = operations();
  if (between(0, HAS_REQUESTS) == 0) {
    MPI_Get(into.memory, 1, into.type, next, part->base + place, shape->count, shape->type, part->window);
    MPI_Win_flush(next, part->window);
  } else {
    MPI_Rget(into.memory, 1, into.type, next, part->base + place, shape->count, shape->type, part->window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  check_operations(part, is_regular, before);
  for (int i = 0; i < bytes; ++i) CHECK_EQ(into.memory[i * into.step], pattern((size_t)i, seed + rank_));
  for (int i = 1; i < shape->bytes && into.step == 2; ++i) CHECK_EQ(into.memory[2 * i - 1], 0);
  drop_origin(&into);
}

/* Checks that the rank before has written the bytes of the type, and no others. */
static void check_part(const struct part *part, const struct shape *shape, MPI_Aint place, int bytes, int seed) {
  const int before = (rank_ + size_ - 1) % size_;
  unsigned char *expected = calloc(PART, 1);
  for (int i = 0; i < bytes; ++i) expected[place + shape->at[i]] = pattern((size_t)i, seed + before);
  CHECK(memcmp(part->memory, expected, PART) == 0);
  free(expected);
}

/* A place where all bytes of the type are in the part. */
static MPI_Aint random_place(const struct shape *shape) {
  int low = 0, high = 0;
  for (int i = 0; i < shape->bytes; ++i) {
    if (shape->at[i] < low) low = shape->at[i];
    if (shape->at[i] > high) high = shape->at[i];
  }
  const int last = PART - 1 - high;
  return between(1, 4) == 1 ? last : between(-low, last);
}

static void access_one(const struct part *part, int kind, int seed) {
  static struct shape shape;
  shape.count = 1;
  shape.bytes = 0;
  kinds_[kind].make(&shape);
  MPI_Type_commit(&shape.type);
  const MPI_Aint place = random_place(&shape);
  const int is_whole = !HAS_SHORT_PUTS || between(1, 4) != 1, bytes = is_whole ? shape.bytes : between(1, shape.bytes);
  memset(part->memory, 0, PART);
  MPI_Win_sync(part->window);
  MPI_Barrier(MPI_COMM_WORLD);
  put(part, &shape, place, bytes, kinds_[kind].is_regular && is_whole, seed);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(part->window);
  check_part(part, &shape, place, bytes, seed);
  get(part, &shape, place, bytes, kinds_[kind].is_regular, seed);
  MPI_Type_free(&shape.type);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  long long seed = argc > 1 ? atoll(argv[1]) : (long long)time(NULL);
  MPI_Bcast(&seed, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  if (rank_ == 0) printf("seed %lld\n", seed);
  fflush(stdout);
  random_ = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  for (enum flavor flavor = CREATED; flavor < FLAVORS; ++flavor) {
    struct part part;
    if (flavor == ADJOINING && !HAS_ADJOINING) continue;
    make(flavor, &part);
    MPI_Win_lock_all(0, part.window);
    for (int round = 0; round < ROUNDS; ++round) access_one(&part, round % KINDS, round);
    MPI_Win_unlock_all(part.window);
    drop(&part);
  }
  return finish();
}
