/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives on intercommunicators, in all forms: every root, blocks of equal and of different lengths, types with
 * gaps, operators that do not commute, groups that give nothing, many at a time, persistent ones in any order.
 */
#include "inter.h"

enum { MOST = 16, LENGTH = 300 };

static struct sides sides_;

/* The root argument of this rank, if the root is a rank of the upper or of the lower group. */
static int root_of(int upper, int root) {
  if (sides_.upper != upper) return root;
  return sides_.rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

/* What a world rank gives as element i. */
static int value_of(int world, int i) { return world * 1000 + i; }

static void fill_own(int *data, int count) {
  for (int i = 0; i < count; ++i) data[i] = value_of(rank_, i);
}

static void rooted(int upper, int root, MPI_Datatype type, int stride) {
  MPI_Comm inter = sides_.inter;
  const int argument = root_of(upper, root), n = sides_.remote_size;
  const int is_root = argument == MPI_ROOT, is_idle = argument == MPI_PROC_NULL;
  const int root_world = sides_.upper == upper ? rank_ : sides_.remote[root];
  static int one[LENGTH * 2], all[MOST * LENGTH * 2], counts[MOST], places[MOST];
  const int count = 20;

  fill_own(one, 2 * LENGTH);
  for (int i = 0; i < count * stride && !is_root && !is_idle; ++i) one[i] = -1;
  DO(Bcast, bcast, one, count, type, argument, inter);
  for (int i = 0; i < count && !is_idle; ++i) CHECK_EQ(one[i * stride], value_of(root_world, i * stride));

  fill_own(one, 2 * LENGTH);
  memset(all, 0xff, sizeof all);
  DO(Gather, gather, one, count, type, all, count, type, argument, inter);
  for (int r = 0; r < n && is_root; ++r) {
    for (int i = 0; i < count; ++i) CHECK_EQ(all[(r * count + i) * stride], value_of(sides_.remote[r], i * stride));
  }

  /* Rank r gives r elements more, and the root takes them in the reverse order. */
  memset(all, 0xff, sizeof all);
  for (int r = 0; r < n; ++r) {
    counts[r] = r + (r > 0) * 3;
    places[r] = (n - 1 - r) * 40;
  }
  const int mine = sides_.rank + (sides_.rank > 0) * 3;
  DO_SMALL(Gatherv, gatherv, one, mine, type, all, counts, places, type, argument, inter);
  for (int r = 0; r < n && is_root; ++r) {
    for (int i = 0; i < counts[r]; ++i) CHECK_EQ(all[(places[r] + i) * stride], value_of(sides_.remote[r], i * stride));
    CHECK_EQ(all[(places[r] + counts[r]) * stride], -1);
  }

  fill_own(all, MOST * LENGTH);
  memset(one, 0xff, sizeof one);
  DO(Scatter, scatter, all, count, type, one, count, type, argument, inter);
  for (int i = 0; i < count && !is_root && !is_idle; ++i)
    CHECK_EQ(one[i * stride], value_of(root_world, (sides_.rank * count + i) * stride));

  memset(one, 0xff, sizeof one);
  DO_SMALL(Scatterv, scatterv, all, counts, places, type, one, mine, type, argument, inter);
  for (int i = 0; i < mine && !is_root && !is_idle; ++i)
    CHECK_EQ(one[i * stride], value_of(root_world, ((sides_.size - 1 - sides_.rank) * 40 + i) * stride));
  if (!is_root && !is_idle) CHECK_EQ(one[mine * stride], -1);
}

/* All ranks of both groups give and take. */
static void mutual(MPI_Datatype type, int stride) {
  MPI_Comm inter = sides_.inter;
  const int n = sides_.remote_size, count = 15;
  static int one[LENGTH * 2], in[MOST * LENGTH * 2], in_counts[MOST], in_places[MOST];

  DO_SMALL(Barrier, barrier, inter);
  fill_own(one, 2 * LENGTH);
  memset(in, 0xff, sizeof in);
  DO(Allgather, allgather, one, count, type, in, count, type, inter);
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < count; ++i) CHECK_EQ(in[(r * count + i) * stride], value_of(sides_.remote[r], i * stride));
  }
  /* The lower group gives nothing. */
  memset(in, 0xff, sizeof in);
  DO(Allgather, allgather, one, sides_.upper ? count : 0, type, in, sides_.upper ? 0 : count, type, inter);
  for (int r = 0; r < n && !sides_.upper; ++r) {
    for (int i = 0; i < count; ++i) CHECK_EQ(in[(r * count + i) * stride], value_of(sides_.remote[r], i * stride));
  }
  if (sides_.upper) CHECK_EQ(in[0], -1);

  memset(in, 0xff, sizeof in);
  for (int r = 0; r < n; ++r) {
    in_counts[r] = 1 + sides_.remote[r] % 7;
    in_places[r] = r * 20;
  }
  DO_SMALL(Allgatherv, allgatherv, one, 1 + rank_ % 7, type, in, in_counts, in_places, type, inter);
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < in_counts[r]; ++i)
      CHECK_EQ(in[(in_places[r] + i) * stride], value_of(sides_.remote[r], i * stride));
    CHECK_EQ(in[(in_places[r] + in_counts[r]) * stride], -1);
  }
}

/* Each rank sends blocks of its own to each rank of the other group. */
static void alltoalls(MPI_Datatype type, int stride) {
  MPI_Comm inter = sides_.inter;
  const int n = sides_.remote_size, count = 15;
  static int all[MOST * LENGTH * 2], in[MOST * LENGTH * 2], counts[MOST], places[MOST];
  static int in_counts[MOST], in_places[MOST];
  static MPI_Datatype types[MOST];

  fill_own(all, MOST * LENGTH);
  memset(in, 0xff, sizeof in);
  DO(Alltoall, alltoall, all, count, type, in, count, type, inter);
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < count; ++i)
      CHECK_EQ(in[(r * count + i) * stride], value_of(sides_.remote[r], (sides_.rank * count + i) * stride));
  }

  /* The rank gives its number and that of the target as the count. */
  memset(in, 0xff, sizeof in);
  for (int r = 0; r < n; ++r) {
    counts[r] = (rank_ + sides_.remote[r]) % 5;
    places[r] = (n - 1 - r) * 10;
    in_counts[r] = counts[r];
    in_places[r] = r * 12;
    types[r] = type;
  }
  DO_SMALL(Alltoallv, alltoallv, all, counts, places, type, in, in_counts, in_places, type, inter);
  for (int turn = 0; turn < 2; ++turn) {
    for (int r = 0; r < n; ++r) {
      for (int i = 0; i < in_counts[r]; ++i) {
        const int there = (sides_.size - 1 - sides_.rank) * 10 + i;
        CHECK_EQ(in[(r * 12 + i) * stride], value_of(sides_.remote[r], there * stride));
      }
      CHECK_EQ(in[(r * 12 + in_counts[r]) * stride], -1);
    }
    if (turn == 1) break;
    memset(in, 0xff, sizeof in);
    MPI_Aint lower, extent;
    MPI_Type_get_extent(type, &lower, &extent);
    for (int r = 0; r < n; ++r) {
      places[r] *= (int)extent;
      in_places[r] *= (int)extent;
    }
    DO_SMALL(Alltoallw, alltoallw, all, counts, places, types, in, in_counts, in_places, types, inter);
  }
}

/* Matrices of two rows: the product depends on the order. */
static void multiply(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; ++i) {
    unsigned *a = (unsigned *)in + 4 * i, *b = (unsigned *)inout + 4 * i;
    const unsigned made[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                              a[2] * b[1] + a[3] * b[3]};
    memcpy(b, made, sizeof made);
  }
}

static void matrix_of(int world, int i, unsigned *made) {
  for (int k = 0; k < 4; ++k) made[k] = (unsigned)(world * 7 + i * 3 + k + (k == 0));
}

/* The product of the matrices i of all ranks of the other group. */
static void expected_matrix(int i, unsigned *made) {
  int one = 1;
  MPI_Datatype none = MPI_DATATYPE_NULL;
  matrix_of(sides_.remote[sides_.remote_size - 1], i, made);
  for (int r = sides_.remote_size - 2; r >= 0; --r) {
    unsigned left[4];
    matrix_of(sides_.remote[r], i, left);
    multiply(left, made, &one, &none);
  }
}

static int sum_of_others(int i) {
  int sum = 0;
  for (int r = 0; r < sides_.remote_size; ++r) sum += value_of(sides_.remote[r], i);
  return sum;
}

static void check_matrices(const unsigned *got, int first, int count) {
  for (int i = 0; i < count; ++i) {
    unsigned expected[4];
    expected_matrix(first + i, expected);
    CHECK(memcmp(got + 4 * i, expected, sizeof expected) == 0);
  }
}

static void reductions(MPI_Op op, MPI_Datatype matrix) {
  MPI_Comm inter = sides_.inter;
  static int out[LENGTH], in[LENGTH], counts[MOST];
  static unsigned given[4 * LENGTH], got[4 * LENGTH];
  const int least = sides_.size * sides_.remote_size; /* a multiple of both sizes */
  fill_own(out, LENGTH);
  for (int i = 0; i < 40; ++i) matrix_of(rank_, i, given + 4 * i);

  memset(in, 0xff, sizeof in);
  DO(Allreduce, allreduce, out, in, LENGTH, MPI_INT, MPI_SUM, inter);
  for (int i = 0; i < LENGTH; ++i) CHECK_EQ(in[i], sum_of_others(i));
  DO(Allreduce, allreduce, given, got, 40, matrix, op, inter);
  check_matrices(got, 0, 40);
  DO(Allreduce, allreduce, out, in, 0, MPI_INT, MPI_SUM, inter);

  for (int upper = 0; upper < 2; ++upper) {
    const int roots = sides_.upper == upper ? sides_.size : sides_.remote_size;
    for (int root = 0; root < roots; ++root) {
      const int argument = root_of(upper, root);
      memset(in, 0xff, sizeof in);
      memset(got, 0, sizeof got);
      DO(Reduce, reduce, out, in, 50, MPI_INT, MPI_SUM, argument, inter);
      for (int i = 0; i < 50; ++i) CHECK_EQ(in[i], argument == MPI_ROOT ? sum_of_others(i) : -1);
      DO(Reduce, reduce, given, got, 40, matrix, op, argument, inter);
      if (argument == MPI_ROOT) check_matrices(got, 0, 40);
    }
  }

  memset(in, 0xff, sizeof in);
  const int share = 2 * least / sides_.size;
  DO(Reduce_scatter_block, reduce_scatter_block, out, in, share, MPI_INT, MPI_SUM, inter);
  for (int i = 0; i < share; ++i) CHECK_EQ(in[i], sum_of_others(sides_.rank * share + i));
  CHECK_EQ(in[share], -1);
  DO(Reduce_scatter_block, reduce_scatter_block, given, got, least / sides_.size, matrix, op, inter);
  check_matrices(got, sides_.rank * least / sides_.size, least / sides_.size);

  /* The first rank of each group gets most. */
  for (int r = 0; r < sides_.size; ++r) counts[r] = r == 0 ? 40 - (sides_.size - 1) * 2 : 2;
  const int first = sides_.rank == 0 ? 0 : counts[0] + (sides_.rank - 1) * 2;
  memset(in, 0xff, sizeof in);
  DO_SMALL(Reduce_scatter, reduce_scatter, out, in, counts, MPI_INT, MPI_SUM, inter);
  for (int i = 0; i < counts[sides_.rank]; ++i) CHECK_EQ(in[i], sum_of_others(first + i));
  CHECK_EQ(in[counts[sides_.rank]], -1);
  DO_SMALL(Reduce_scatter, reduce_scatter, given, got, counts, matrix, op, inter);
  check_matrices(got, first, counts[sides_.rank]);
}

/* Elements with a gap, which no operator may touch. */
static void add_first(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int *)inout)[2 * i] += ((int *)in)[2 * i];
}

static void reductions_with_gaps(MPI_Datatype gap) {
  int out[20], in[20];
  MPI_Op op;
  MPI_Op_create(add_first, 1, &op);
  fill_own(out, 20);
  memset(in, 0xff, sizeof in);
  DO(Allreduce, allreduce, out, in, 10, gap, op, sides_.inter);
  for (int i = 0; i < 10; ++i) {
    CHECK_EQ(in[2 * i], sum_of_others(2 * i));
    CHECK_EQ(in[2 * i + 1], -1);
  }
  MPI_Op_free(&op);
}

/* Many in progress, completed from the last to the first. */
static void many_at_once(void) {
  enum { MANY = 24 };
  MPI_Request requests[3 * MANY];
  static int out[LENGTH], sums[MANY][3], told[MANY][3], roots[MANY][2];
  fill_own(out, LENGTH);
  memset(told, 0xff, sizeof told);
  for (int i = 0; i < MANY; ++i) {
    const int root = root_of(i % 2, 0);
    MPI_Iallreduce(out + i, sums[i], 3, MPI_INT, MPI_SUM, sides_.inter, &requests[3 * i]);
    if (root == MPI_ROOT) memcpy(told[i], out + i, sizeof told[i]);
    MPI_Ibcast(told[i], 3, MPI_INT, root, sides_.inter, &requests[3 * i + 1]);
    MPI_Ireduce(out + i, roots[i], 2, MPI_INT, MPI_SUM, root, sides_.inter, &requests[3 * i + 2]);
  }
  for (int i = 3 * MANY - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  for (int i = 0; i < MANY; ++i) {
    const int root = root_of(i % 2, 0);
    for (int k = 0; k < 3; ++k) CHECK_EQ(sums[i][k], sum_of_others(i + k));
    for (int k = 0; k < 3 && root >= 0; ++k) CHECK_EQ(told[i][k], value_of(sides_.remote[0], i + k));
    for (int k = 0; k < 2 && root == MPI_ROOT; ++k) CHECK_EQ(roots[i][k], sum_of_others(i + k));
  }
}

/* MPI_Request_get_status delivers a result once. */
static void looked_at(MPI_Datatype gap) {
  int out[20], in[20], done = 0;
  MPI_Op op;
  MPI_Request request;
  MPI_Op_create(add_first, 1, &op);
  fill_own(out, 20);
  MPI_Iallreduce(out, in, 10, gap, op, sides_.inter, &request);
  MPI_Op_free(&op);
  for (; !done; sched_yield()) CHECK_EQ(MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE), MPI_SUCCESS);
  for (int i = 0; i < 10; ++i) CHECK_EQ(in[2 * i], sum_of_others(2 * i));
  in[0] = -5;
  CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(in[0], -5);
}

#if MPI_VERSION >= 4 || defined(CANELE_MPI)
/* Arrays of large counts. */
static void large_counts(void) {
  static int all[MOST * LENGTH], in[MOST * LENGTH];
  MPI_Count counts[MOST], in_counts[MOST], own_counts[MOST];
  MPI_Aint places[MOST], bytes[MOST];
  MPI_Datatype types[MOST];
  const int n = sides_.remote_size;
  fill_own(all, MOST * LENGTH);
  for (int r = 0; r < n; ++r) {
    counts[r] = in_counts[r] = (rank_ + sides_.remote[r]) % 5;
    places[r] = r * 10;
    bytes[r] = r * 10 * (MPI_Aint)sizeof(int);
    types[r] = MPI_INT;
  }
  for (int typed = 0; typed < 2; ++typed) {
    memset(in, 0xff, sizeof in);
    if (typed) {
      MPI_Alltoallw_c(all, counts, bytes, types, in, in_counts, bytes, types, sides_.inter);
    } else {
      MPI_Alltoallv_c(all, counts, places, MPI_INT, in, in_counts, places, MPI_INT, sides_.inter);
    }
    for (int r = 0; r < n; ++r) {
      for (int i = 0; i < 10; ++i)
        CHECK_EQ(in[r * 10 + i], i < in_counts[r] ? value_of(sides_.remote[r], sides_.rank * 10 + i) : -1);
    }
  }
  for (int r = 0; r < sides_.size; ++r) own_counts[r] = 2 * sides_.remote_size;
  MPI_Reduce_scatter_c(all, in, own_counts, MPI_INT, MPI_SUM, sides_.inter);
  for (int i = 0; i < 2 * n; ++i) CHECK_EQ(in[i], sum_of_others(sides_.rank * 2 * n + i));
}

/* Persistent ones, which each rank starts in another order, many times; their communicator is freed before. */
static void persistent(int strict) {
  enum { ALL = 6, ROUNDS = 5 };
  static int out[LENGTH], told[4], sums[2][4], root_sum[4], share[2 * MOST], in[MOST];
  const int n = sides_.remote_size, root = root_of(1, 0), count = 2 * n;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request requests[ALL];
  MPI_Info_create(&info);
  if (strict) MPI_Info_set(info, "mpi_assert_strict_persistent_collective_ordering", "true");
  MPI_Comm_dup_with_info(sides_.inter, info, &comm);
  MPI_Info_free(&info);
  MPI_Allreduce_init(out, sums[0], 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(root == MPI_ROOT ? out : told, 4, MPI_INT, root, comm, MPI_INFO_NULL, &requests[1]);
  MPI_Reduce_init(out, root_sum, 4, MPI_INT, MPI_SUM, root, comm, MPI_INFO_NULL, &requests[2]);
  MPI_Allreduce_init(out + 4, sums[1], 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[3]);
  MPI_Reduce_scatter_block_init(out, share, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[4]);
  MPI_Alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, comm, MPI_INFO_NULL, &requests[5]);
  MPI_Comm_free(&comm);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < LENGTH; ++i) out[i] = value_of(rank_, i + round);
    for (int i = 0; i < ALL; ++i) MPI_Start(&requests[strict ? i : (i * 5 + rank_ + round) % ALL]);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; ++i) {
      CHECK(sums[0][i] == sum_of_others(i + round) && sums[1][i] == sum_of_others(i + 4 + round));
      if (root == MPI_ROOT) CHECK_EQ(root_sum[i], sum_of_others(i + round));
      if (root >= 0) CHECK_EQ(told[i], value_of(sides_.remote[0], i + round));
    }
    for (int i = 0; i < count; ++i) CHECK_EQ(share[i], sum_of_others(sides_.rank * count + i + round));
    for (int r = 0; r < n; ++r) CHECK_EQ(in[r], value_of(sides_.remote[r], sides_.rank + round));
  }
  for (int i = 0; i < ALL; ++i) MPI_Request_free(&requests[i]);
}

static void since_mpi_4(void) {
  large_counts();
  persistent(0);
  persistent(1);
}
#else
static void since_mpi_4(void) {}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Datatype gap, matrix;
  MPI_Op product;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap);
  MPI_Type_commit(&gap);
  MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &product);
  for (int kind = 0; kind < KINDS && size_ > 1; ++kind) {
    sides_ = make_sides(kind);
    for (form_ = 0; form_ < ALL_FORMS; ++form_) {
      for (int upper = 0; upper < 2; ++upper) {
        const int roots = sides_.upper == upper ? sides_.size : sides_.remote_size;
        for (int root = 0; root < roots; ++root) {
          rooted(upper, root, MPI_INT, 1);
          rooted(upper, root, gap, 2);
        }
      }
      mutual(MPI_INT, 1);
      mutual(gap, 2);
      alltoalls(MPI_INT, 1);
      alltoalls(gap, 2);
      reductions(product, matrix);
      reductions_with_gaps(gap);
    }
    many_at_once();
    looked_at(gap);
    since_mpi_4();
    MPI_Barrier(sides_.inter);
    free_sides(&sides_);
  }
  MPI_Op_free(&product);
  MPI_Type_free(&gap);
  MPI_Type_free(&matrix);
  return finish();
}
