/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Type_create_darray: what each process of a grid has, compared with an element-by-element computation.
 *
 * One rank computes for all processes of each grid; then ranks exchange their parts.
 */
#include "check.h"

enum { kMost = 3 };

struct array {
  int dimensions, order, element;
  int sizes[kMost], distributions[kMost], arguments[kMost], grid[kMost];
};

static unsigned long state_ = 1;

static int below(int limit) {
  state_ = state_ * 6364136223846793005ul + 1442695040888963407ul;
  return (int)(state_ >> 33) % limit;
}

static struct array random_array(void) {
  struct array a = {1 + below(kMost), below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, 1 + below(3), {0}, {0}, {0}, {0}};
  for (int i = 0; i < a.dimensions; ++i) {
    const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    a.sizes[i] = 1 + below(12);
    a.distributions[i] = kinds[below(3)];
    a.grid[i] = a.distributions[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + below(4);
    a.arguments[i] = MPI_DISTRIBUTE_DFLT_DARG;
    if (a.distributions[i] == MPI_DISTRIBUTE_CYCLIC && below(2)) a.arguments[i] = 1 + below(5);
    if (a.distributions[i] == MPI_DISTRIBUTE_BLOCK && below(2))
      a.arguments[i] = (a.sizes[i] + a.grid[i] - 1) / a.grid[i] + below(3);
  }
  return a;
}

static int processes_of(const struct array *a) {
  int processes = 1;
  for (int i = 0; i < a->dimensions; ++i) processes *= a->grid[i];
  return processes;
}

/* Returns whether the process at `place` of a dimension has its element `index`. */
static int has(const struct array *a, int dimension, int place, int index) {
  const int usual = a->arguments[dimension] == MPI_DISTRIBUTE_DFLT_DARG, grid = a->grid[dimension];
  int block = a->arguments[dimension];
  if (a->distributions[dimension] == MPI_DISTRIBUTE_NONE) return 1;
  if (a->distributions[dimension] == MPI_DISTRIBUTE_BLOCK) {
    if (usual) block = (a->sizes[dimension] + grid - 1) / grid;
    return index / block == place;
  }
  return index / (usual ? 1 : block) % grid == place;
}

/* Writes the places of all elements that a process has, in the order of memory; returns how many. */
static int elements_of(const struct array *a, int process, int *places) {
  int total = 1, found = 0, at[kMost], place[kMost];
  for (int i = a->dimensions - 1; i >= 0; --i) {
    place[i] = process % a->grid[i];
    process /= a->grid[i];
    total *= a->sizes[i];
  }
  for (int cell = 0; cell < total; ++cell) {
    int rest = cell, mine = 1;
    for (int n = 0; n < a->dimensions; ++n) {
      const int i = a->order == MPI_ORDER_C ? a->dimensions - 1 - n : n;
      at[i] = rest % a->sizes[i];
      rest /= a->sizes[i];
      mine = mine && has(a, i, place[i], at[i]);
    }
    if (mine) places[found++] = cell;
  }
  return found;
}

static MPI_Datatype type_of(const struct array *a, int process, MPI_Datatype element) {
  MPI_Datatype type;
  MPI_Type_create_darray(processes_of(a), process, a->dimensions, a->sizes, a->distributions, a->arguments, a->grid,
                         a->order, element, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Packs what a process has of an array of numbered bytes, and compares each of them. */
static void check_process(const struct array *a, int process) {
  unsigned char memory[2 * 12 * 12 * 12 * 3], packed[sizeof memory];
  int places[12 * 12 * 12], position = 0, size, cells = 1;
  MPI_Aint lower, extent;
  MPI_Datatype element, type;
  for (size_t i = 0; i < sizeof memory; ++i) memory[i] = pattern(i, 5);
  for (int i = 0; i < a->dimensions; ++i) cells *= a->sizes[i];
  const int count = elements_of(a, process, places), bytes = a->element;
  MPI_Type_contiguous(bytes, MPI_BYTE, &element);
  type = type_of(a, process, element);
  MPI_Type_size(type, &size);
  CHECK_EQ(size, count * bytes);
  MPI_Type_get_extent(type, &lower, &extent);
  CHECK(lower == 0 && extent == (MPI_Aint)cells * bytes);
  MPI_Pack(memory, 2, type, packed, sizeof packed, &position, MPI_COMM_SELF); /* two arrays behind each other */
  CHECK_EQ(position, 2 * size);
  for (int i = 0; i < 2 * count; ++i) {
    const size_t from = (size_t)((i / count) * cells + places[i % count]) * (size_t)bytes;
    for (int b = 0; b < bytes; ++b) CHECK_EQ(packed[i * bytes + b], memory[from + (size_t)b]);
  }
  MPI_Type_free(&type);
  MPI_Type_free(&element);
}

static void all_grids(void) {
  for (int trial = 0; trial < 400; ++trial) {
    const struct array a = random_array();
    for (int process = 0; process < processes_of(&a); ++process) check_process(&a, process);
  }
}

/* The example of the standard: 10 elements cyclic by 3 over 2 processes. The first has 0 1 2 6 7 8, the other the rest.
 */
static void contents(void) {
  const struct array a = {1, MPI_ORDER_C, 1, {10}, {MPI_DISTRIBUTE_CYCLIC}, {3}, {2}};
  MPI_Datatype type = type_of(&a, 1, MPI_INT), child;
  int integers, addresses, types, combiner, numbers[8];
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  CHECK(combiner == MPI_COMBINER_DARRAY && integers == 8 && addresses == 0 && types == 1);
  MPI_Type_get_contents(type, 8, 0, 1, numbers, NULL, &child);
  const int expected[] = {2, 1, 1, 10, MPI_DISTRIBUTE_CYCLIC, 3, 2, MPI_ORDER_C};
  CHECK(memcmp(numbers, expected, sizeof expected) == 0 && child == MPI_INT);
  MPI_Type_free(&type);
#ifdef CANELE_MPI
  const MPI_Count size = (MPI_Count)1 << 33;
  MPI_Count counts[4], large[1];
  MPI_Type_create_darray_c(2, 1, 1, &size, a.distributions, a.arguments, a.grid, MPI_ORDER_C, MPI_BYTE, &type);
  MPI_Type_get_envelope_c(type, &counts[0], &counts[1], &counts[2], &counts[3], &combiner);
  CHECK(combiner == MPI_COMBINER_DARRAY && counts[0] == 7 && counts[1] == 0 && counts[2] == 1 && counts[3] == 1);
  MPI_Type_get_contents_c(type, 7, 0, 1, 1, numbers, NULL, large, &child);
  CHECK(large[0] == size && numbers[2] == 1 && numbers[6] == MPI_ORDER_C);
  MPI_Type_size_c(type,
                  large); /* 2^33 = 6 * 1431655765 + 2: the last period has 2 elements, all of the first process */
  CHECK_EQ(large[0], (MPI_Count)3 * 1431655765);
  MPI_Type_free(&type);
#endif
}

/* Each rank sends its part of an array to the next one, which receives it in an array of its own. */
static void exchange(void) {
  const struct array mine = {2,
                             MPI_ORDER_FORTRAN,
                             1,
                             {50, 31},
                             {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
                             {4, MPI_DISTRIBUTE_DFLT_DARG},
                             {size_, 1}};
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  static int out[50 * 31], in[50 * 31], places[50 * 31];
  MPI_Datatype sent = type_of(&mine, rank_, MPI_INT), received = type_of(&mine, before, MPI_INT);
  for (int i = 0; i < 50 * 31; ++i) out[i] = rank_ * 10000 + i, in[i] = -1;
  MPI_Sendrecv(out, 1, sent, next, 0, in, 1, received, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int count = elements_of(&mine, before, places);
  for (int i = 0, n = 0; i < 50 * 31; ++i) {
    const int is_there = n < count && places[n] == i;
    CHECK_EQ(in[i], is_there ? before * 10000 + i : -1);
    n += is_there;
  }
  MPI_Type_free(&sent);
  MPI_Type_free(&received);
}

#ifdef CANELE_MPI
static int class_with(struct array a, int processes, int rank) {
  MPI_Datatype type;
  return class_of(MPI_Type_create_darray(processes, rank, a.dimensions, a.sizes, a.distributions, a.arguments, a.grid,
                                         a.order, MPI_INT, &type));
}

static void wrong_arguments(void) {
  const struct array good = {1, MPI_ORDER_C, 1, {10}, {MPI_DISTRIBUTE_BLOCK}, {5}, {2}};
  struct array a = good;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_with(good, 2, 2), MPI_ERR_RANK);
  CHECK_EQ(class_with(good, 2, -1), MPI_ERR_RANK);
  CHECK_EQ(class_with(good, 3, 0), MPI_ERR_ARG);
  a.arguments[0] = 4; /* two processes have 8 of 10 elements */
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a.arguments[0] = 0;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a = good;
  a.distributions[0] = 99;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a.distributions[0] = MPI_DISTRIBUTE_NONE;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a = good;
  a.sizes[0] = 0;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a = good;
  a.order = 0;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a = good;
  a.grid[0] = 0;
  CHECK_EQ(class_with(a, 2, 0), MPI_ERR_ARG);
  a.dimensions = 0;
  CHECK_EQ(class_with(a, 1, 0), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  if (rank_ == 0) all_grids();
  contents();
  exchange();
#ifdef CANELE_MPI
  wrong_arguments();
#endif
  return finish();
}
