/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Accumulates: reductions into the parts of other ranks, from all ranks at once, and what was there before.
 */
#include <stddef.h>
#include <stdint.h>

#include "check.h"

enum { COUNT = 50, BYTES = COUNT * 32 };

struct part {
  MPI_Win window;
  void *memory;
};

static int allocates_;

static struct part make(void) {
  static long double memory[BYTES / sizeof(long double)];
  struct part part = {MPI_WIN_NULL, memory};
  if (allocates_) {
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part.memory, &part.window);
  } else {
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part.window);
  }
  memset(part.memory, 0, BYTES);
  MPI_Barrier(MPI_COMM_WORLD);
  return part;
}

/* ---- all ranks add to the elements of all ranks */

#define SUMS(name, type, handle)                                                                                     \
  static void sums_of_##name(void) {                                                                                 \
    struct part part = make();                                                                                       \
    type values[COUNT];                                                                                              \
    for (int i = 0; i < COUNT; ++i) values[i] = (type)(rank_ + i % 7);                                               \
    MPI_Win_fence(0, part.window);                                                                                   \
    for (int rank = 0; rank < size_; ++rank) {                                                                       \
      MPI_Accumulate(values, COUNT, handle, rank, 0, COUNT, handle, MPI_SUM, part.window);                           \
      MPI_Accumulate(&values[3], 1, handle, rank, 0, 1, handle, MPI_SUM, part.window);                               \
    }                                                                                                                \
    MPI_Win_fence(0, part.window);                                                                                   \
    for (int i = 0; i < COUNT; ++i) {                                                                                \
      type expected = 0;                                                                                             \
      for (int rank = 0; rank < size_; ++rank) expected = (type)(expected + rank + i % 7 + (i == 0 ? rank + 3 : 0)); \
      CHECK(((type *)part.memory)[i] == expected);                                                                   \
    }                                                                                                                \
    MPI_Win_free(&part.window);                                                                                      \
  }

SUMS(int8, int8_t, MPI_INT8_T)
SUMS(short, short, MPI_SHORT)
SUMS(int, int, MPI_INT)
SUMS(uint64, uint64_t, MPI_UINT64_T)
SUMS(float, float, MPI_FLOAT)
SUMS(double, double, MPI_DOUBLE)
SUMS(long_double, long double, MPI_LONG_DOUBLE)

static void sums_of_complex(void) {
  struct part part = make();
  const double values[2] = {rank_, 2 * rank_};
  MPI_Win_lock_all(0, part.window);
  for (int rank = 0; rank < size_; ++rank)
    MPI_Accumulate(values, 1, MPI_C_DOUBLE_COMPLEX, rank, 32, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, part.window);
  MPI_Win_unlock_all(part.window);
  MPI_Barrier(MPI_COMM_WORLD);
  const double *own = (const double *)((const char *)part.memory + 32), total = size_ * (size_ - 1) / 2.0;
  MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
  CHECK(own[0] == total && own[1] == 2 * total);
  MPI_Win_unlock(rank_, part.window);
  MPI_Win_free(&part.window);
}

/* ---- one operator after the other, beside MPI_Reduce_local */

static void operators(MPI_Datatype type, size_t bytes, const MPI_Op *ops, int count, const void *first,
                      const void *second) {
  struct part part = make();
  const int target = (rank_ + 1) % size_;
  char expected[32], found[32];
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, part.window);
  for (int i = 0; i < count; ++i) {
    const MPI_Aint place = 32 * i;
    memcpy(expected, first, bytes);
    MPI_Reduce_local(second, expected, 1, type, ops[i]);
    MPI_Accumulate(first, 1, type, target, place, 1, type, MPI_REPLACE, part.window);
    memset(found, 0, sizeof found);
    MPI_Get_accumulate(second, 1, type, found, 1, type, target, place, 1, type, ops[i], part.window);
    MPI_Win_flush(target, part.window);
    CHECK(memcmp(found, first, bytes) == 0);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, found, 1, type, target, place, 1, type, MPI_NO_OP, part.window);
    MPI_Win_flush(target, part.window);
    CHECK(memcmp(found, expected, bytes) == 0);
    MPI_Fetch_and_op(first, found, type, target, place, MPI_REPLACE, part.window);
    MPI_Win_flush(target, part.window);
    CHECK(memcmp(found, expected, bytes) == 0);
    MPI_Fetch_and_op(second, found, type, target, place, ops[i], part.window);
    MPI_Win_flush(target, part.window);
    CHECK(memcmp(found, first, bytes) == 0);
    MPI_Fetch_and_op(NULL, found, type, target, place, MPI_NO_OP, part.window);
    MPI_Win_flush(target, part.window);
    CHECK(memcmp(found, expected, bytes) == 0);
  }
  MPI_Win_unlock(target, part.window);
  MPI_Win_free(&part.window);
}

static void all_operators(void) {
  static const MPI_Op integers[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
                                    MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
#ifdef OPEN_MPI /* 4.1 computes logical operators bit by bit */
  const int count = 7;
#else
  const int count = 10;
#endif
  static const MPI_Op reals[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  const int8_t tiny[2] = {-3, 6};
  const short small[2] = {-300, 250};
  const int numbers[2] = {100000, -77};
  const uint64_t large[2] = {UINT64_C(1) << 40, 12345};
  const float singles[2] = {1.5F, -2.25F};
  const double doubles[2] = {1e100, 3.5};
  operators(MPI_INT8_T, 1, integers, count, &tiny[0], &tiny[1]);
  operators(MPI_SHORT, 2, integers, count, &small[0], &small[1]);
  operators(MPI_INT, 4, integers, count, &numbers[0], &numbers[1]);
  operators(MPI_UINT64_T, 8, integers, count, &large[0], &large[1]);
  operators(MPI_FLOAT, 4, reals, 4, &singles[0], &singles[1]);
  operators(MPI_DOUBLE, 8, reals, 4, &doubles[0], &doubles[1]);
}

/* ---- pairs: of which the smallest value wins, with its index */

#define PAIRS(name, type, handle)                                                                                 \
  static void pairs_of_##name(void) {                                                                             \
    struct pair {                                                                                                 \
      type value;                                                                                                 \
      int index;                                                                                                  \
    };                                                                                                            \
    struct part part = make();                                                                                    \
    struct pair *own = part.memory, mine[3], before[3], found;                                                    \
    memset(mine, 0, sizeof mine);                                                                                 \
    memset(before, 0, sizeof before);                                                                             \
    MPI_Win_fence(0, part.window);                                                                                \
    for (int i = 0; i < 3; ++i)                                                                                   \
      own[i].value = 1000, own[i].index = -1, mine[i].value = (type)((rank_ + i) % size_), mine[i].index = rank_; \
    MPI_Win_fence(0, part.window);                                                                                \
    for (int rank = 0; rank < size_; ++rank)                                                                      \
      MPI_Get_accumulate(mine, 3, handle, before, 3, handle, rank, 0, 3, handle, MPI_MINLOC, part.window);        \
    MPI_Win_fence(0, part.window);                                                                                \
    for (int i = 0; i < 3; ++i) {                                                                                 \
      CHECK(own[i].value == 0);                                                                                   \
      CHECK_EQ(own[i].index, (size_ - i % size_) % size_);                                                        \
      CHECK(before[i].value == 1000 || before[i].value < size_);                                                  \
    }                                                                                                             \
    const int target = (rank_ + 1) % size_;                                                                       \
    mine[0].value = 7, mine[0].index = 8;                                                                         \
    MPI_Win_fence(0, part.window);                                                                                \
    MPI_Accumulate(mine, 1, handle, target, (MPI_Aint)sizeof mine[0], 1, handle, MPI_REPLACE, part.window);       \
    MPI_Fetch_and_op(NULL, &found, handle, target, (MPI_Aint)sizeof mine[0], MPI_NO_OP, part.window);             \
    MPI_Win_fence(0, part.window);                                                                                \
    CHECK(found.value == 7 && found.index == 8 && own[1].value == 7 && own[1].index == 8);                        \
    CHECK(own[0].value == 0 && own[2].value == 0);                                                                \
    MPI_Win_free(&part.window);                                                                                   \
  }

PAIRS(int, int, MPI_2INT)
PAIRS(short, short, MPI_SHORT_INT)
PAIRS(long, long, MPI_LONG_INT)
PAIRS(float, float, MPI_FLOAT_INT)
PAIRS(double, double, MPI_DOUBLE_INT)
PAIRS(long_double, long double, MPI_LONG_DOUBLE_INT)

static void pairs(void) {
  pairs_of_int();
  pairs_of_short();
  pairs_of_long();
  pairs_of_float();
  pairs_of_double();
  pairs_of_long_double();
}

/* Pairs with gaps between them, at every side: the first two of three are compared. */
#define PAIRS_WITH_GAPS(name, type, handle)                                                                    \
  static void gaps_of_##name(void) {                                                                           \
    enum { N = 9 };                                                                                            \
    struct pair {                                                                                              \
      type value;                                                                                              \
      int index;                                                                                               \
    };                                                                                                         \
    struct part part = make();                                                                                 \
    struct pair *own = part.memory, mine[N], before[N];                                                        \
    const int target = (rank_ + 1) % size_, origin = (rank_ + size_ - 1) % size_;                              \
    MPI_Datatype two_of_three;                                                                                 \
    MPI_Type_vector(N / 3, 2, 3, handle, &two_of_three);                                                       \
    MPI_Type_commit(&two_of_three);                                                                            \
    MPI_Win_fence(0, part.window);                                                                             \
    for (int i = 0; i < N; ++i) {                                                                              \
      own[i].value = (type)(i % 2 == 0 ? 90 : 10), own[i].index = -i;                                          \
      mine[i].value = 50, mine[i].index = 100 * rank_ + i;                                                     \
      before[i].value = 3, before[i].index = 3;                                                                \
    }                                                                                                          \
    MPI_Win_fence(0, part.window);                                                                             \
    MPI_Get_accumulate(mine, 1, two_of_three, before, 1, two_of_three, target, 0, 1, two_of_three, MPI_MAXLOC, \
                       part.window);                                                                           \
    MPI_Win_fence(0, part.window);                                                                             \
    for (int i = 0; i < N; ++i) {                                                                              \
      const int is_changed = i % 3 < 2 && i % 2 == 1;                                                          \
      CHECK(own[i].value == (is_changed ? 50 : i % 2 == 0 ? 90 : 10));                                         \
      CHECK_EQ(own[i].index, is_changed ? 100 * origin + i : -i);                                              \
      CHECK(before[i].value == (i % 3 == 2 ? 3 : i % 2 == 0 ? 90 : 10));                                       \
      CHECK_EQ(before[i].index, i % 3 == 2 ? 3 : -i);                                                          \
    }                                                                                                          \
    MPI_Type_free(&two_of_three);                                                                              \
    MPI_Win_free(&part.window);                                                                                \
  }

PAIRS_WITH_GAPS(int, int, MPI_2INT)
PAIRS_WITH_GAPS(short, short, MPI_SHORT_INT)
PAIRS_WITH_GAPS(double, double, MPI_DOUBLE_INT)
PAIRS_WITH_GAPS(long_double, long double, MPI_LONG_DOUBLE_INT)

static void pairs_with_gaps(void) {
  gaps_of_int();
  gaps_of_short();
  gaps_of_double();
  gaps_of_long_double();
}

/* ---- gaps at every side */

static void gaps(void) {
  enum { N = 6 };
  MPI_Datatype two, three;
  MPI_Type_vector(N, 1, 2, MPI_INT, &two);
  MPI_Type_vector(N, 1, 3, MPI_INT, &three);
  MPI_Type_commit(&two);
  MPI_Type_commit(&three);
#ifdef OPEN_MPI /* 4.1 returns random bytes if any side has gaps */
  const int kinds = 1;
#else
  const int kinds = 8;
#endif
  for (int which = 0; which < kinds; ++which) {
    struct part part = make();
    int values[3 * N], before[3 * N], *own = part.memory;
    const int gaps_here = which & 1, gaps_back = which & 2, gaps_there = which & 4;
    const int target = (rank_ + 1) % size_, step = gaps_there ? 3 : 1;
    for (int i = 0; i < 3 * N; ++i) values[i] = 1000 * rank_ + i, before[i] = -1;
    MPI_Win_fence(0, part.window);
    for (int i = 0; i < 3 * N; ++i) own[i] = i;
    MPI_Win_fence(0, part.window);
    MPI_Get_accumulate(values, gaps_here ? 1 : N, gaps_here ? two : MPI_INT, before, gaps_back ? 1 : N,
                       gaps_back ? two : MPI_INT, target, 0, gaps_there ? 1 : N, gaps_there ? three : MPI_INT, MPI_SUM,
                       part.window);
    MPI_Win_fence(0, part.window);
    const int origin = (rank_ + size_ - 1) % size_;
    for (int i = 0; i < 3 * N; ++i) {
      const int k = i / step, is_changed = i % step == 0 && k < N;
      CHECK_EQ(own[i], i + (is_changed ? 1000 * origin + k * (gaps_here ? 2 : 1) : 0));
      const int back = gaps_back ? 2 : 1, b = i / back, is_result = i % back == 0 && b < N;
      CHECK_EQ(before[i], is_result ? b * step : -1);
    }
    MPI_Win_free(&part.window);
  }
  MPI_Type_free(&two);
  MPI_Type_free(&three);
}

/* ---- chains: what each rank finds is what others have left */

static void chains(int rounds, int requests) {
  struct part part = make();
  int *seen = calloc((size_t)(rounds * size_ * COUNT), sizeof *seen),
      *all = calloc((size_t)(rounds * size_ * COUNT), sizeof *all);
  short ones[COUNT], before[COUNT];
  for (int i = 0; i < COUNT; ++i) ones[i] = 1;
  MPI_Win_lock_all(0, part.window);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (requests) {
      MPI_Rget_accumulate(ones, COUNT, MPI_SHORT, before, COUNT, MPI_SHORT, 0, 0, COUNT, MPI_SHORT, MPI_SUM,
                          part.window, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Get_accumulate(ones, COUNT, MPI_SHORT, before, COUNT, MPI_SHORT, 0, 0, COUNT, MPI_SHORT, MPI_SUM,
                         part.window);
      MPI_Win_flush(0, part.window);
    }
    for (int i = 0; i < COUNT; ++i) {
      CHECK(before[i] >= 0 && before[i] < rounds * size_);
      ++seen[i * rounds * size_ + before[i]];
    }
  }
  MPI_Win_unlock_all(part.window);
  MPI_Allreduce(seen, all, rounds * size_ * COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < rounds * size_ * COUNT; ++i) CHECK_EQ(all[i], 1);
  MPI_Win_free(&part.window);
  free(seen);
  free(all);
}

/* Operations on one place take effect in their order. */
static void order(void) {
  struct part part = make();
  const int target = (rank_ + 1) % size_;
  int values[100], found[100];
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, part.window);
  for (int i = 0; i < 100; ++i) {
    values[i] = i;
    MPI_Get_accumulate(&values[i], 1, MPI_INT, &found[i], 1, MPI_INT, target, 0, 1, MPI_INT,
                       i % 2 == 0 ? MPI_REPLACE : MPI_MAX, part.window);
  }
  MPI_Win_unlock(target, part.window);
  for (int i = 1; i < 100; ++i) CHECK_EQ(found[i], i - 1);
  MPI_Request requests[2];
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, part.window);
  /* Without elements. */
  MPI_Accumulate(values, 0, MPI_INT, target, 0, 0, MPI_INT, MPI_SUM, part.window);
  MPI_Get_accumulate(NULL, 0, MPI_INT, found, 0, MPI_INT, target, 0, 0, MPI_INT, MPI_NO_OP, part.window);
  MPI_Raccumulate(values, 100, MPI_INT, target, 400, 100, MPI_INT, MPI_REPLACE, part.window, &requests[0]);
  MPI_Raccumulate(values, 1, MPI_INT, MPI_PROC_NULL, 400, 1, MPI_INT, MPI_REPLACE, part.window, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Get(found, 100, MPI_INT, target, 400, 100, MPI_INT, part.window);
  MPI_Win_unlock(target, part.window);
  for (int i = 0; i < 100; ++i) CHECK_EQ(found[i], i);
  MPI_Win_free(&part.window);
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)count, (void)type;
}

static void errors(void) {
  struct part part = make();
  int value = 1, found = 7;
  double real = 1;
  MPI_Op own;
  MPI_Op_create(sum, 1, &own);
  MPI_Win_set_errhandler(part.window, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, part.window);
  CHECK_EQ(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, own, part.window)), MPI_ERR_OP);
  CHECK_EQ(class_of(MPI_Accumulate(&value, 1, MPI_INT, size_, 0, 1, MPI_INT, MPI_SUM, part.window)), MPI_ERR_RANK);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Accumulate(&real, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, part.window)), MPI_ERR_OP);
  CHECK_EQ(class_of(MPI_Accumulate(&real, 1, MPI_DOUBLE, 0, 0, 2, MPI_FLOAT, MPI_SUM, part.window)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, BYTES, 1, MPI_INT, MPI_SUM, part.window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Accumulate(&value, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, part.window)), MPI_ERR_DISP);
  CHECK_EQ(class_of(MPI_Fetch_and_op(&value, &found, MPI_INT, 0, 2, MPI_PROD, part.window)), MPI_ERR_DISP);
#endif
  MPI_Win_fence(0, part.window);
  CHECK_EQ(found, 7);
  CHECK_EQ(*(int *)part.memory, 0);
  (void)real;
  MPI_Op_free(&own);
  MPI_Win_free(&part.window);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (allocates_ = 0; allocates_ < 2; ++allocates_) {
    sums_of_int8();
    sums_of_short();
    sums_of_int();
    sums_of_uint64();
    sums_of_float();
    sums_of_double();
    sums_of_long_double();
    sums_of_complex();
    all_operators();
#ifndef OPEN_MPI /* 4.1 returns wrong pairs */
    pairs();
    pairs_with_gaps();
#endif
    gaps();
    chains(20, 0);
    chains(20, 1);
    order();
    errors();
  }
  return finish();
}
