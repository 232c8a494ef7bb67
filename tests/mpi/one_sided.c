/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations: put and get of all sizes and types under every kind of synchronisation, atomic operations of
 * all ranks at once, locks that exclude.
 *
 * Every test runs on a window of the program's memory and on one that MPI has allocated.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>

#include "check.h"

/* A window whose part of each rank is `bytes` bytes, in units of `unit`. */
struct part {
  MPI_Win window;
  void *memory;
  int is_own;
};

static int allocates_;

static struct part make(size_t bytes, int unit) {
  struct part part;
  part.is_own = !allocates_;
  if (allocates_) {
    MPI_Win_allocate((MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &part.memory, &part.window);
    memset(part.memory, 0, bytes);
  } else {
    part.memory = calloc(1, bytes);
    MPI_Win_create(part.memory, (MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &part.window);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* no rank accesses the part before it is cleared */
  return part;
}

static void drop(struct part *part) {
  MPI_Win_free(&part->window);
  if (part->is_own) free(part->memory);
}

static int next(void) { return (rank_ + 1) % size_; }
static int before(void) { return (rank_ + size_ - 1) % size_; }

/* ---- sizes: each rank writes into the part of the next one, and reads the part of the one before */

static const size_t sizes_[] = {0, 1, 3, 8, 100, 1000, 4096, 70000, 300000, 2000000};
enum { SIZES = sizeof sizes_ / sizeof sizes_[0], MOST = 2000000 };

static void check_part(const void *memory, size_t length, int from, int seed) {
  CHECK(matches(memory, length, from + seed));
  CHECK_EQ(((const unsigned char *)memory)[length], 0);
}

static void sizes_with_fence(void) {
  char *data = malloc(MOST), *copy = malloc(MOST);
  for (int i = 0; i < SIZES; ++i) {
    const size_t length = sizes_[i];
    struct part part = make(MOST + 1, 1);
    fill(data, length, rank_ + i);
    memset(copy, 0, MOST);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, part.window);
    MPI_Put(data, (int)length, MPI_BYTE, next(), 0, (int)length, MPI_BYTE, part.window);
    MPI_Win_fence(0, part.window);
    check_part(part.memory, length, before(), i);
    MPI_Get(copy, (int)length, MPI_BYTE, before(), 0, (int)length, MPI_BYTE, part.window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, part.window);
    CHECK(matches(copy, length, (rank_ + 2 * size_ - 2) % size_ + i));
    drop(&part);
  }
  free(data);
  free(copy);
}

/* Flushes at different times: within the lock, or by its end only. */
static void sizes_with_locks(int all, int flushes) {
  char *data = malloc(MOST), *copy = malloc(MOST);
  struct part part = make(MOST + 1, 1);
  for (int i = 0; i < SIZES; ++i) {
    const size_t length = sizes_[i];
    fill(data, length, rank_ + i);
    memset(copy, 0, MOST);
    all ? MPI_Win_lock_all(0, part.window) : MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, part.window);
    MPI_Put(data, (int)length, MPI_BYTE, next(), 1, (int)length, MPI_BYTE, part.window);
    if (flushes == 1) MPI_Win_flush(next(), part.window);
    if (flushes == 2) MPI_Win_flush_all(part.window);
    MPI_Get(copy, (int)length, MPI_BYTE, next(), 1, (int)length, MPI_BYTE, part.window);
    if (flushes == 1) MPI_Win_flush_local(next(), part.window);
    if (flushes == 2) MPI_Win_flush_local_all(part.window);
    if (flushes != 0) CHECK(matches(copy, length, rank_ + i));
    all ? MPI_Win_unlock_all(part.window) : MPI_Win_unlock(next(), part.window);
    if (flushes != 0) CHECK(matches(copy, length, rank_ + i));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
    CHECK(matches((char *)part.memory + 1, length, before() + i));
    CHECK_EQ(*(char *)part.memory, 0);
    MPI_Win_unlock(rank_, part.window);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  drop(&part);
  free(data);
  free(copy);
}

static void sizes_with_requests(void) {
  enum { PARTS = 4 };
  char *data = malloc(MOST), *copy = malloc(MOST);
  struct part part = make(MOST, 1);
  for (int i = 1; i < SIZES; ++i) {
    const int length = (int)sizes_[i], step = length / PARTS;
    MPI_Request requests[PARTS];
    fill(data, (size_t)length, rank_ + i);
    memset(copy, 0, MOST);
    MPI_Win_lock_all(0, part.window);
    for (int k = 0; k < PARTS; ++k) {
      const int bytes = k == PARTS - 1 ? length - k * step : step;
      MPI_Rput(data + k * step, bytes, MPI_BYTE, next(), k * step, bytes, MPI_BYTE, part.window, &requests[k]);
    }
    MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(next(), part.window);
    for (int k = 0; k < PARTS; ++k) {
      const int bytes = k == PARTS - 1 ? length - k * step : step;
      MPI_Rget(copy + k * step, bytes, MPI_BYTE, next(), k * step, bytes, MPI_BYTE, part.window, &requests[k]);
    }
    for (int k = 0; k < PARTS; ++k) {
      int flag = 0;
      while (!flag) MPI_Test(&requests[k], &flag, MPI_STATUS_IGNORE);
      CHECK(requests[k] == MPI_REQUEST_NULL);
    }
    CHECK(matches(copy, (size_t)length, rank_ + i));
    MPI_Win_unlock_all(part.window);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  drop(&part);
  free(data);
  free(copy);
}

/* ---- types: a matrix of 8 rows and 8 columns; columns, rows, and elements apart */

enum { SIDE = 8 };

static MPI_Datatype column(void) {
  MPI_Datatype type;
  MPI_Type_vector(SIDE, 1, SIDE, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static int number_at(int rank, int i) { return 1000 * (rank + 1) + i; }

/* With and without requests, the type freed before the operation is over. */
static void types(int requests) {
  int matrix[SIDE * SIDE], copy[SIDE * SIDE];
  for (int origin_gaps = 0; origin_gaps < 2; ++origin_gaps) {
    for (int target_gaps = 0; target_gaps < 2; ++target_gaps) {
      struct part part = make(sizeof matrix, sizeof(int));
      int *own = part.memory;
      MPI_Datatype gaps = column();
      MPI_Request request = MPI_REQUEST_NULL;
      const int origin_count = origin_gaps ? 1 : SIDE, target_count = target_gaps ? 1 : SIDE;
      const MPI_Datatype origin = origin_gaps ? gaps : MPI_INT, target = target_gaps ? gaps : MPI_INT;
      const int step = origin_gaps ? SIDE : 1, there = target_gaps ? SIDE : 1;
      for (int i = 0; i < SIDE * SIDE; ++i) matrix[i] = number_at(rank_, i), copy[i] = -1;
      MPI_Win_fence(0, part.window);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, part.window);
      MPI_Win_lock_all(0, part.window);
      if (requests) {
        MPI_Rput(matrix + 2, origin_count, origin, next(), 1, target_count, target, part.window, &request);
      } else {
        MPI_Put(matrix + 2, origin_count, origin, next(), 1, target_count, target, part.window);
      }
      if (requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Win_flush(next(), part.window);
      if (requests) {
        MPI_Rget(copy + 3, origin_count, origin, next(), 1, target_count, target, part.window, &request);
      } else {
        MPI_Get(copy + 3, origin_count, origin, next(), 1, target_count, target, part.window);
      }
      MPI_Type_free(&gaps);
      if (requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (requests) CHECK_EQ(copy[3 + step], number_at(rank_, 2 + step));
      MPI_Win_unlock_all(part.window);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
      for (int i = 0; i < SIDE * SIDE; ++i) {
        const int k = (i - 1) / there, is_written = i >= 1 && (i - 1) % there == 0 && k < SIDE;
        CHECK_EQ(own[i], is_written ? number_at(before(), 2 + k * step) : 0);
        const int c = (i - 3) / step, is_read = i >= 3 && (i - 3) % step == 0 && c < SIDE;
        CHECK_EQ(copy[i], is_read ? number_at(rank_, 2 + c * step) : -1);
      }
      MPI_Win_unlock(rank_, part.window);
      drop(&part);
    }
  }
}

/* Many operations with gaps and no flush: the library keeps a description of each. */
static void many_types(void) {
  enum { COUNT = 3000 };
  int *values = malloc(sizeof *values * 2 * COUNT);
  struct part part = make(COUNT * 2 * sizeof(int), sizeof(int));
  MPI_Datatype pair;
  MPI_Type_vector(2, 1, COUNT, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  for (int i = 0; i < 2 * COUNT; ++i) values[i] = number_at(rank_, i);
  MPI_Win_fence(0, part.window);
  for (int i = 0; i < COUNT; ++i) MPI_Put(values + i, 1, pair, next(), i, 1, pair, part.window);
  MPI_Type_free(&pair);
  MPI_Win_fence(0, part.window);
  for (int i = 0; i < 2 * COUNT; ++i) CHECK_EQ(((int *)part.memory)[i], number_at(before(), i));
  drop(&part);
  free(values);
}

/* Each rank has its own displacement unit, and writes to all others. */
/* A block of a matrix goes to another place of the next rank's matrix, and comes back from there. */
static void blocks_of_a_matrix(void) {
  enum { ROWS = 40, COLUMNS = 50, HIGH = 7, WIDE = 11 };
  const int sizes[] = {ROWS, COLUMNS}, block[] = {HIGH, WIDE}, here[] = {20, 30}, there[] = {3, 5};
  static int mine[ROWS][COLUMNS], back[ROWS][COLUMNS];
  struct part part = make(sizeof mine, sizeof(int));
  int(*own)[COLUMNS] = part.memory;
  MPI_Datatype from, to;
  MPI_Type_create_subarray(2, sizes, block, here, MPI_ORDER_C, MPI_INT, &from);
  MPI_Type_create_subarray(2, sizes, block, there, MPI_ORDER_C, MPI_INT, &to);
  MPI_Type_commit(&from);
  MPI_Type_commit(&to);
  for (int i = 0; i < ROWS * COLUMNS; ++i) mine[i / COLUMNS][i % COLUMNS] = number_at(rank_, i);
  memset(back, 0, sizeof back);
  MPI_Win_fence(0, part.window);
  MPI_Put(mine, 1, from, next(), 0, 1, to, part.window);
  MPI_Win_fence(0, part.window);
  MPI_Get(back, 1, from, next(), 0, 1, to, part.window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, part.window);
  MPI_Type_free(&from);
  MPI_Type_free(&to);
  for (int row = 0; row < ROWS; ++row) {
    for (int column = 0; column < COLUMNS; ++column) {
      const int r = row - there[0], c = column - there[1], is_put = r >= 0 && r < HIGH && c >= 0 && c < WIDE;
      CHECK_EQ(own[row][column], is_put ? number_at(before(), (r + here[0]) * COLUMNS + c + here[1]) : 0);
      const int y = row - here[0], x = column - here[1], is_got = y >= 0 && y < HIGH && x >= 0 && x < WIDE;
      CHECK_EQ(back[row][column], is_got ? mine[row][column] : 0);
    }
  }
  drop(&part);
}

static void units(void) {
  int *parts = calloc((size_t)size_, sizeof *parts);
  MPI_Win window;
  MPI_Win_create(parts, (MPI_Aint)sizeof *parts * size_, rank_ % 2 == 0 ? 1 : (int)sizeof *parts, MPI_INFO_NULL,
                 MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  for (int rank = 0; rank < size_; ++rank) {
    const MPI_Aint place = rank % 2 == 0 ? (MPI_Aint)sizeof *parts * rank_ : rank_;
    MPI_Put(&rank_, 1, MPI_INT, rank, place, 1, MPI_INT, window);
  }
  MPI_Put(&rank_, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int rank = 0; rank < size_; ++rank) CHECK_EQ(parts[rank], rank);
  MPI_Win_free(&window);
  free(parts);
}

/* ---- locks */

/* Counts by reading and writing: wrong if two ranks are in it at a time. */
static void exclusive_counter(int rounds) {
  struct part part = make(2 * sizeof(long), sizeof(long));
  for (int round = 0; round < rounds; ++round) {
    const int target = round % size_;
    long value[2];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, part.window);
    MPI_Get(value, 2, MPI_LONG, target, 0, 2, MPI_LONG, part.window);
    MPI_Win_flush(target, part.window);
    CHECK_EQ(value[0], value[1]);
    ++value[0], ++value[1];
    MPI_Put(&value[0], 1, MPI_LONG, target, 0, 1, MPI_LONG, part.window);
    MPI_Put(&value[1], 1, MPI_LONG, target, 1, 1, MPI_LONG, part.window);
    MPI_Win_unlock(target, part.window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  long sum = 0, mine;
  MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
  mine = ((long *)part.memory)[0];
  MPI_Win_unlock(rank_, part.window);
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum, (long)rounds * size_);
  drop(&part);
}

/* One rank writes two words under the exclusive lock; those that share the lock see both or none. */
static void shared_and_exclusive(int rounds) {
  struct part part = make(2 * sizeof(long), sizeof(long));
  for (long round = 1; round <= rounds; ++round) {
    if (rank_ == 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size_ - 1, 0, part.window);
      MPI_Put(&round, 1, MPI_LONG, size_ - 1, 0, 1, MPI_LONG, part.window);
      MPI_Win_flush(size_ - 1, part.window);
      MPI_Put(&round, 1, MPI_LONG, size_ - 1, 1, 1, MPI_LONG, part.window);
      MPI_Win_unlock(size_ - 1, part.window);
    } else {
      long seen[2] = {-1, -2};
      MPI_Win_lock(MPI_LOCK_SHARED, size_ - 1, 0, part.window);
      MPI_Get(seen, 2, MPI_LONG, size_ - 1, 0, 2, MPI_LONG, part.window);
      MPI_Win_unlock(size_ - 1, part.window);
      CHECK_EQ(seen[0], seen[1]);
    }
  }
  drop(&part);
}

/* Several targets are locked at a time; those of MPI_MODE_NOCHECK without a message. */
static void several_locks(void) {
  struct part part = make(sizeof(int) * (size_t)size_, sizeof(int));
  for (int rank = 0; rank < size_; ++rank)
    MPI_Win_lock(MPI_LOCK_SHARED, rank, rank % 2 == 0 ? 0 : MPI_MODE_NOCHECK, part.window);
  for (int rank = 0; rank < size_; ++rank) MPI_Put(&rank_, 1, MPI_INT, rank, rank_, 1, MPI_INT, part.window);
  MPI_Win_flush_all(part.window);
  for (int rank = size_ - 1; rank >= 0; --rank) MPI_Win_unlock(rank, part.window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
  for (int rank = 0; rank < size_; ++rank) CHECK_EQ(((int *)part.memory)[rank], rank);
  MPI_Win_unlock(rank_, part.window);
  drop(&part);
}

/* ---- atomic operations */

/* All ranks draw numbers from one counter: each number is drawn once. */
static void draw(MPI_Datatype type, size_t bytes, int rounds) {
  struct part part = make(16, 1);
  const uint64_t one = 1;
  unsigned char *drawn = calloc((size_t)(rounds * size_), 1), *all = calloc((size_t)(rounds * size_), 1);
  uint64_t last = 0;
  MPI_Win_lock_all(0, part.window);
  for (int round = 0; round < rounds; ++round) {
    uint64_t number = 0;
    MPI_Fetch_and_op(&one, &number, type, 0, 8, MPI_SUM, part.window);
    MPI_Win_flush(0, part.window);
    if (bytes == 4) number = *(const uint32_t *)&number;
    CHECK(number < (uint64_t)(rounds * size_));
    CHECK(round == 0 || number > last);
    last = number;
    ++drawn[number];
  }
  MPI_Win_unlock_all(part.window);
  MPI_Allreduce(drawn, all, rounds * size_, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < rounds * size_; ++i) CHECK_EQ(all[i], 1);
  drop(&part);
  free(drawn);
  free(all);
}

static void fetch_and_op(void) {
  struct part part = make(sizeof(uint64_t) * 2, sizeof(uint64_t));
  uint64_t value = 0xf0, found = 7;
  MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, part.window);
  MPI_Fetch_and_op(&value, &found, MPI_UINT64_T, rank_, 1, MPI_REPLACE, part.window);
  MPI_Win_flush(rank_, part.window);
  CHECK_EQ(found, 0);
  static const struct {
    MPI_Op op;
    uint64_t operand, result;
  } steps[] = {{MPI_BOR, 0x0f, 0xff},
               {MPI_BAND, 0x3c, 0x3c},
               {MPI_BXOR, 0xff, 0xc3},
               {MPI_SUM, 0x10, 0xd3},
               {MPI_NO_OP, 0x77, 0xd3}};
  uint64_t expected = 0xf0;
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
    MPI_Fetch_and_op(&steps[i].operand, &found, MPI_UINT64_T, rank_, 1, steps[i].op, part.window);
    MPI_Win_flush(rank_, part.window);
    CHECK_EQ(found, expected);
    expected = steps[i].result;
  }
  MPI_Fetch_and_op(NULL, &found, MPI_UINT64_T, rank_, 1, MPI_NO_OP, part.window);
  MPI_Win_unlock(rank_, part.window);
  CHECK_EQ(found, 0xd3);
  drop(&part);
}

/* A spin lock of the program, of an element of any size: the sums that it protects are right. The neighbours of the
 * element are written meanwhile. */
static void spin_lock(MPI_Datatype type, size_t bytes, int rounds) {
  const MPI_Aint sum_at = 64, lock_at = bytes == 1 ? 3 : (MPI_Aint)bytes;
  struct part part = make(128, 1);
  const uint64_t taken = ~UINT64_C(0), open = 0;
  MPI_Win_lock_all(0, part.window);
  for (int round = 0; round < rounds; ++round) {
    uint64_t found = 1;
    do {
      MPI_Compare_and_swap(&taken, &open, &found, type, 0, lock_at, part.window);
      MPI_Win_flush(0, part.window);
      if (memcmp(&found, &open, bytes) != 0) sched_yield();
    } while (memcmp(&found, &open, bytes) != 0);
    long sum = -1;
    MPI_Get(&sum, 1, MPI_LONG, 0, sum_at, 1, MPI_LONG, part.window);
    MPI_Win_flush(0, part.window);
    ++sum;
    MPI_Put(&sum, 1, MPI_LONG, 0, sum_at, 1, MPI_LONG, part.window);
    MPI_Win_flush(0, part.window);
    MPI_Compare_and_swap(&open, &taken, &found, type, 0, lock_at, part.window);
    MPI_Win_flush(0, part.window);
    CHECK(memcmp(&found, &taken, bytes) == 0);
  }
  MPI_Win_unlock_all(part.window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_ == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, part.window);
    CHECK_EQ(*(long *)((char *)part.memory + sum_at), (long)rounds * size_);
    for (MPI_Aint i = 0; i < sum_at; ++i) CHECK_EQ(((char *)part.memory)[i], 0);
    MPI_Win_unlock(0, part.window);
  }
  drop(&part);
}

/* ---- threads: each with operations and flushes of its own, within one lock of the process */

enum { THREADS = 3, DRAWS = 50 };

struct drawer {
  MPI_Win window;
  int number;
  uint64_t drawn[DRAWS];
  int squares[DRAWS][2];
};

static void *draw_in_thread(void *argument) {
  struct drawer *me = argument;
  const uint64_t one = 1;
  MPI_Datatype apart;
  MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
  MPI_Type_commit(&apart);
  for (int i = 0; i < DRAWS; ++i) {
    const int target = (rank_ + me->number) % size_, sent[3] = {i, -1, i * i};
    const MPI_Aint place = 64 + 16 * (rank_ * THREADS + me->number);
    MPI_Fetch_and_op(&one, &me->drawn[i], MPI_UINT64_T, 0, 0, MPI_SUM, me->window);
    MPI_Put(sent, 1, apart, target, place, 1, apart, me->window);
    MPI_Win_flush(target, me->window);
    MPI_Get(me->squares[i], 2, MPI_INT, target, place, 1, apart, me->window);
    MPI_Win_flush_all(me->window);
    /* both are over, also if another thread's flush had begun in between */
    CHECK(me->drawn[i] != UINT64_MAX && me->squares[i][0] == i && me->squares[i][1] == i * i);
  }
  MPI_Type_free(&apart);
  return NULL;
}

static void threads(void) {
  struct part part = make(64 + 16 * THREADS * (size_t)size_, 1);
  struct drawer drawers[THREADS];
  pthread_t ids[THREADS];
  unsigned char *drawn = calloc(THREADS * DRAWS * (size_t)size_, 1), *all = calloc(THREADS * DRAWS * (size_t)size_, 1);
  MPI_Win_lock_all(0, part.window);
  for (int i = 0; i < THREADS; ++i) {
    memset(&drawers[i], 0xff, sizeof drawers[i]);
    drawers[i].window = part.window;
    drawers[i].number = i;
    CHECK_EQ(pthread_create(&ids[i], NULL, draw_in_thread, &drawers[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) CHECK_EQ(pthread_join(ids[i], NULL), 0);
  MPI_Win_unlock_all(part.window);
  for (int i = 0; i < THREADS; ++i) {
    for (int k = 0; k < DRAWS; ++k) {
      CHECK(drawers[i].squares[k][0] == k && drawers[i].squares[k][1] == k * k);
      CHECK(drawers[i].drawn[k] < (uint64_t)(THREADS * DRAWS * size_));
      ++drawn[drawers[i].drawn[k]];
    }
  }
  MPI_Allreduce(drawn, all, THREADS * DRAWS * size_, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < THREADS * DRAWS * size_; ++i) CHECK_EQ(all[i], 1);
  drop(&part);
  free(drawn);
  free(all);
}

/* ---- a target that computes */

/* Operations that no flush ends take limited memory. */
static void many_without_a_flush(void) {
#ifdef CANELE_MPI
  enum { OPERATIONS = 100000, MOST_KB = 32768 };
  struct part part = make(8, 1);
  *(uint64_t *)part.memory = 7;
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t got = 0;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  MPI_Win_lock_all(0, part.window);
  for (int i = 0; i < OPERATIONS; ++i) MPI_Get(&got, 8, MPI_BYTE, size_ - 1, 0, 8, MPI_BYTE, part.window);
  MPI_Win_unlock_all(part.window);
  getrusage(RUSAGE_SELF, &after);
  CHECK(got == 7);
  CHECK(after.ru_maxrss - before.ru_maxrss < MOST_KB);
  MPI_Barrier(MPI_COMM_WORLD);
  drop(&part);
#endif
}

/* The first rank calls no MPI function until the last one has changed a word in its part. */
static void computing_target(void) {
#ifdef CANELE_MPI /* others may need calls of the target */
  enum { LENGTH = 100000 };
  struct part part = make(LENGTH + 8, 1);
  char *copy = malloc(LENGTH);
  fill(part.memory, LENGTH, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t *told = (uint64_t *)((char *)part.memory + LENGTH);
  const uint64_t go_on = 1;
  if (rank_ == 0 && size_ > 1) {
    while (__atomic_load_n(told, __ATOMIC_ACQUIRE) != go_on) sched_yield();
  } else if (rank_ == size_ - 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, part.window);
    MPI_Get(copy, LENGTH, MPI_BYTE, 0, 0, LENGTH, MPI_BYTE, part.window);
    MPI_Win_flush(0, part.window);
    CHECK(matches(copy, LENGTH, 3));
    uint64_t former;
    MPI_Fetch_and_op(&go_on, &former, MPI_UINT64_T, 0, LENGTH, MPI_REPLACE, part.window);
    MPI_Win_unlock(0, part.window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  drop(&part);
  free(copy);
#endif
}

static void all(void) {
  sizes_with_fence();
  for (int flushes = 0; flushes < 3; ++flushes) {
    sizes_with_locks(0, flushes);
    sizes_with_locks(1, flushes);
  }
  sizes_with_requests();
  types(0);
  types(1);
  many_types();
  blocks_of_a_matrix();
  exclusive_counter(200);
  shared_and_exclusive(100);
  several_locks();
  draw(MPI_INT, 4, 100);
  draw(MPI_UINT64_T, 8, 100);
  fetch_and_op();
#ifndef OPEN_MPI /* 4.1 crashes if a rank swaps in its own part */
  spin_lock(MPI_INT8_T, 1, 20);
  spin_lock(MPI_SHORT, 2, 20);
  spin_lock(MPI_INT, 4, 20);
  spin_lock(MPI_UINT64_T, 8, 20);
#endif
  threads();
  many_without_a_flush();
  computing_target();
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  units();
  for (allocates_ = 0; allocates_ < 2; ++allocates_) all();
  return finish();
}
