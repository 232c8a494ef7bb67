/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives with equal parts: every root, several sizes, MPI_IN_PLACE, derived types, operators that do not commute,
 * sub-communicators.
 */
#include "both.h"

static void barriers(MPI_Comm comm) {
  for (int i = 0; i < 50; ++i) DO_SMALL(Barrier, barrier, comm);
}

static void bcast(MPI_Comm comm, int rank, int size) {
  static const int counts[] = {0, 1, 10, 1000, 50000, 700000};
  int *values = malloc(sizeof *values * 700000);
  for (int root = 0; root < size; ++root) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
      for (int i = 0; i < counts[c]; ++i) values[i] = rank == root ? root * 10 + i : -1;
      DO(Bcast, bcast, values, counts[c], MPI_INT, root, comm);
      for (int i = 0; i < counts[c]; ++i) CHECK_EQ(values[i], root * 10 + i);
    }
  }
  free(values);
}

static void reduce(MPI_Comm comm, int rank, int size) {
  enum { COUNT = 3000 };
  static long in[COUNT], out[COUNT];
  for (int root = 0; root < size; ++root) {
    for (int place = 0; place < 2; ++place) {
      for (int i = 0; i < COUNT; ++i) {
        in[i] = rank + i;
        out[i] = place && rank == root ? rank + i : -1;
      }
      const void *from = place && rank == root ? MPI_IN_PLACE : in;
      DO(Reduce, reduce, from, rank == root ? out : NULL, COUNT, MPI_LONG, MPI_SUM, root, comm);
      for (int i = 0; i < COUNT; ++i) {
        CHECK_EQ(out[i], rank == root ? size * (size - 1) / 2 + (long)size * i : -1);
      }
    }
  }
  double mine = rank == size / 2 ? -3.5 : rank, least = 0, most = 0;
  DO(Allreduce, allreduce, &mine, &least, 1, MPI_DOUBLE, MPI_MIN, comm);
  CHECK(least == -3.5);
  DO(Allreduce, allreduce, &mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm);
  CHECK(most == (size == 1 ? -3.5 : size / 2 == size - 1 ? size - 2 : size - 1));
  int flags = 1 << rank;
  DO(Allreduce, allreduce, MPI_IN_PLACE, &flags, 1, MPI_INT, MPI_BOR, comm);
  CHECK_EQ(flags, (1 << size) - 1);
  struct {
    double value;
    int index;
  } place = {rank == size - 1 ? -1.0 : rank, rank};
  DO(Allreduce, allreduce, MPI_IN_PLACE, &place, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
  CHECK(place.value == -1.0 && place.index == size - 1);
}

/* Floating-point sums are the same on all ranks and in every run. */
static void same_sum(MPI_Comm comm, int rank) {
  double first = 0;
  for (int round = 0; round < 5; ++round) {
    double mine = 1.0 / (rank * 7 + 3), sum = 0, root_sum = 0;
    DO(Allreduce, allreduce, &mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    root_sum = sum;
    DO(Bcast, bcast, &root_sum, 1, MPI_DOUBLE, 0, comm);
    CHECK(sum == root_sum);
    if (round == 0) first = sum;
    CHECK(sum == first);
  }
}

/* 2x2 matrices: their product depends on the order. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)type;
  const long *a = in;
  long *b = inout;
  for (int i = 0; i < *count; ++i, a += 4, b += 4) {
    const long product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                             a[2] * b[1] + a[3] * b[3]};
    memcpy(b, product, sizeof product);
  }
}

static void ordered(MPI_Comm comm, int rank, int size) {
  MPI_Datatype matrix;
  MPI_Op op;
  MPI_Type_contiguous(4, MPI_LONG, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &op);
  long expected[2][4] = {{1, 0, 0, 1}, {1, 0, 0, 1}};
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < 2; ++i) {
      long next[4] = {1, peer + 1, i, 1};
      int one = 1;
      multiply(expected[i], next, &one, &matrix);
      memcpy(expected[i], next, sizeof next);
    }
  }
  const long mine[8] = {1, rank + 1, 0, 1, 1, rank + 1, 1, 1};
  for (int root = 0; root < size; ++root) {
    long product[8] = {0};
    DO(Reduce, reduce, mine, product, 2, matrix, op, root, comm);
    if (rank == root) CHECK(memcmp(product, expected, sizeof product) == 0);
  }
  long product[8];
  DO(Allreduce, allreduce, mine, product, 2, matrix, op, comm);
  CHECK(memcmp(product, expected, sizeof product) == 0);
  MPI_Op_free(&op);
  CHECK(op == MPI_OP_NULL);
  MPI_Type_free(&matrix);
}

static void gather_scatter(MPI_Comm comm, int rank, int size) {
  enum { COUNT = 500 };
  int *all = malloc(sizeof *all * (size_t)size * COUNT), mine[COUNT];
  for (int root = 0; root < size; ++root) {
    for (int place = 0; place < 2; ++place) {
      const int here = place && rank == root;
      for (int i = 0; i < size * COUNT; ++i) all[i] = -1;
      for (int i = 0; i < COUNT; ++i) mine[i] = all[rank * COUNT + i] = rank * 1000 + i;
      DO(Gather, gather, here ? MPI_IN_PLACE : mine, COUNT, MPI_INT, all, COUNT, MPI_INT, root, comm);
      for (int i = 0; rank == root && i < size * COUNT; ++i) CHECK_EQ(all[i], i / COUNT * 1000 + i % COUNT);
      for (int i = 0; i < COUNT; ++i) mine[i] = here ? rank * 1000 + i : -1;
      DO(Scatter, scatter, all, COUNT, MPI_INT, here ? MPI_IN_PLACE : mine, COUNT, MPI_INT, root, comm);
      for (int i = 0; i < COUNT; ++i) CHECK_EQ(mine[i], rank * 1000 + i);
    }
  }
  free(all);
}

static void all_to_all(MPI_Comm comm, int rank, int size) {
  enum { COUNT = 300 };
  const size_t cells = (size_t)size * COUNT;
  int *in = malloc(sizeof *in * cells), *out = malloc(sizeof *out * cells);
  for (int place = 0; place < 2; ++place) {
    for (int i = 0; i < COUNT; ++i) out[i] = rank * 100 + i;
    for (size_t i = 0; i < cells; ++i) in[i] = -1;
    for (int i = 0; i < COUNT; ++i) in[rank * COUNT + i] = rank * 100 + i;
    DO(Allgather, allgather, place ? MPI_IN_PLACE : out, COUNT, MPI_INT, in, COUNT, MPI_INT, comm);
    for (int i = 0; i < size * COUNT; ++i) CHECK_EQ(in[i], i / COUNT * 100 + i % COUNT);
    for (int i = 0; i < size * COUNT; ++i) in[i] = out[i] = rank * 100000 + i;
    DO(Alltoall, alltoall, place ? MPI_IN_PLACE : out, COUNT, MPI_INT, in, COUNT, MPI_INT, comm);
    for (int i = 0; i < size * COUNT; ++i) CHECK_EQ(in[i], i / COUNT * 100000 + rank * COUNT + i % COUNT);
  }
  free(in);
  free(out);
}

/* The two sides describe one message differently: every second int, and plain ints. */
static void derived(MPI_Comm comm, int rank, int size) {
  MPI_Datatype spaced, part;
  MPI_Type_vector(5, 1, 2, MPI_INT, &spaced);
  MPI_Type_create_resized(spaced, 0, 10 * sizeof(int), &part);
  MPI_Type_commit(&part);
  int wide[10], flat[5], *all = malloc(sizeof *all * 10 * (size_t)size);
  for (int i = 0; i < 10; ++i) wide[i] = rank == 0 ? i : -1;
  DO(Bcast, bcast, wide, 1, part, 0, comm);
  for (int i = 0; i < 10; ++i) CHECK_EQ(wide[i], rank == 0 || i % 2 == 0 ? i : -1);
  for (int i = 0; i < 5; ++i) flat[i] = rank * 10 + i;
  for (int i = 0; i < size * 10; ++i) all[i] = -7;
  DO(Allgather, allgather, flat, 5, MPI_INT, all, 1, part, comm);
  for (int i = 0; i < size * 10; ++i) CHECK_EQ(all[i], i % 2 == 0 ? i / 10 * 10 + i % 10 / 2 : -7);
  DO(Scatter, scatter, all, 1, part, flat, 5, MPI_INT, size - 1, comm);
  for (int i = 0; i < 5; ++i) CHECK_EQ(flat[i], rank * 10 + i);
  MPI_Type_free(&part);
  MPI_Type_free(&spaced);
  free(all);
}

static void everything(MPI_Comm comm, int rank, int size) {
  barriers(comm);
  bcast(comm, rank, size);
  reduce(comm, rank, size);
  same_sum(comm, rank);
  ordered(comm, rank, size);
  gather_scatter(comm, rank, size);
  all_to_all(comm, rank, size);
  derived(comm, rank, size);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  on_all_communicators(ALL_FORMS, everything);
  /* Collectives and messages to any receive are kept apart. */
  int value = -1, sent = rank_;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  everything(MPI_COMM_WORLD, rank_, size_);
  MPI_Send(&sent, 1, MPI_INT, (rank_ + 1) % size_, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(value, (rank_ + size_ - 1) % size_);
  return finish();
}
