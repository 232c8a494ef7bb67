/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic windows: memory that ranks attach and detach while the window is in use.
 */
#include "check.h"

static MPI_Win make(void) {
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  return window;
}

/* Tells all ranks the address of each rank's memory. */
static void tell(const void *memory, MPI_Aint *addresses) {
  MPI_Aint mine;
  MPI_Get_address(memory, &mine);
  MPI_Allgather(&mine, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
}

/* Several pieces of each rank, of which the next rank writes each one. */
static void pieces(MPI_Win window) {
  enum { PIECES = 20, LENGTH = 100 };
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  int *memory[PIECES];
  MPI_Aint *addresses[PIECES];
  for (int i = 0; i < PIECES; ++i) {
    memory[i] = calloc(LENGTH, sizeof(int));
    addresses[i] = malloc(sizeof *addresses[i] * (size_t)size_);
    CHECK_EQ(MPI_Win_attach(window, memory[i], LENGTH * sizeof(int)), MPI_SUCCESS);
    tell(memory[i], addresses[i]);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < PIECES; ++i) {
    const int value = 1000 * rank_ + i;
    const MPI_Aint place = MPI_Aint_add(addresses[i][next], (MPI_Aint)sizeof(int) * i);
    MPI_Put(&value, 1, MPI_INT, next, place, 1, MPI_INT, window);
    MPI_Win_fence(0, window); /* `value` ends here */
    CHECK_EQ(memory[i][i], 1000 * before + i);
  }
  for (int i = 0; i < PIECES; ++i) {
    CHECK_EQ(MPI_Aint_diff(addresses[i][rank_], (MPI_Aint)memory[i]), 0);
    MPI_Win_detach(window, memory[i]);
    free(memory[i]);
    free(addresses[i]);
  }
}

/* Memory at one address is detached and attached again, within the lock of an origin. */
static void again(MPI_Win window) {
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  long memory[2] = {0, 0};
  const long one = 1;
  tell(memory, addresses);
  MPI_Win_lock_all(0, window);
  for (int round = 1; round <= 20; ++round) {
    memory[0] = 100 * round;
    MPI_Win_attach(window, memory, sizeof memory);
    MPI_Barrier(MPI_COMM_WORLD);
    long found = -1;
    for (int rank = 0; rank < size_; ++rank) {
      MPI_Fetch_and_op(&one, &found, MPI_LONG, rank, addresses[rank], MPI_SUM, window);
      MPI_Win_flush(rank, window);
      CHECK(found >= 100 * round && found < 100 * round + size_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(window, memory);
    CHECK_EQ(memory[0], 100 * round + size_);
  }
  MPI_Win_unlock_all(window);
  free(addresses);
}

static void errors(MPI_Win window) {
#ifdef CANELE_MPI
  int memory[4] = {1, 2, 3, 4}, value = 9;
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  MPI_Win other;
  const MPI_Aint element = sizeof memory[0];
  tell(memory, addresses);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Win_attach(window, memory, -1)), MPI_ERR_SIZE);
  CHECK_EQ(class_of(MPI_Win_attach(window, NULL, 4)), MPI_ERR_BASE);
  CHECK_EQ(class_of(MPI_Win_detach(window, memory)), MPI_ERR_BASE);
  MPI_Win_attach(window, memory + 1, 2 * element);
  CHECK_EQ(class_of(MPI_Win_attach(window, memory, sizeof memory)), MPI_ERR_RMA_ATTACH);
  CHECK_EQ(class_of(MPI_Win_attach(window, memory + 2, element)), MPI_ERR_RMA_ATTACH);
  MPI_Win_fence(0, window);
  const MPI_Aint place = addresses[0];
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, place, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put(memory, 2, MPI_INT, 0, place + 2 * element, 2, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, -element, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(MPI_Get(&value, 1, MPI_INT, 0, place + 2 * element, 1, MPI_INT, window), MPI_SUCCESS);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  CHECK_EQ(value, 3);
  MPI_Win_detach(window, memory + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  CHECK_EQ(class_of(MPI_Get(&value, 1, MPI_INT, 0, place + 2 * element, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  MPI_Win_unlock(0, window);
  MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Win_attach(other, memory, 4)), MPI_ERR_RMA_FLAVOR);
  CHECK_EQ(class_of(MPI_Win_detach(other, memory)), MPI_ERR_RMA_FLAVOR);
  MPI_Win_free(&other);
  free(addresses);
#else
  (void)window, (void)class_of;
#endif
}

#ifdef CANELE_MPI
/* Attaches pieces of `memory` that begin and end where `limits` says, in another order than that of their addresses. */
static void attach_pieces(MPI_Win window, char *memory, const int *limits, int count) {
  for (int i = count - 1; i >= 0; --i)
    CHECK_EQ(MPI_Win_attach(window, memory + limits[i], limits[i + 1] - limits[i]), MPI_SUCCESS);
}

static void detach_pieces(MPI_Win window, char *memory, const int *limits, int count) {
  for (int i = 0; i < count; ++i) CHECK_EQ(MPI_Win_detach(window, memory + limits[i]), MPI_SUCCESS);
}

enum { EACH = 3000 }; /* numbers over several pieces of attached memory */

/* Put and get over all pieces, also with gaps. Each rank writes the memory of the next one. */
static void move_across(MPI_Win window, long *memory, const MPI_Aint *addresses) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  long *sent = malloc(EACH * sizeof(long)), *found = calloc(EACH, sizeof(long));
  MPI_Datatype even;
  MPI_Request request;
  MPI_Type_vector(EACH / 2, 1, 2, MPI_LONG, &even);
  MPI_Type_commit(&even);
  for (int i = 0; i < EACH; ++i) sent[i] = 10000L * rank_ + i;
  MPI_Win_lock_all(0, window);
  CHECK_EQ(MPI_Put(sent, EACH, MPI_LONG, next, addresses[next], EACH, MPI_LONG, window), MPI_SUCCESS);
  MPI_Win_flush(next, window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < EACH; ++i) CHECK_EQ(memory[i], 10000L * before + i);
  CHECK_EQ(MPI_Rget(found, EACH, MPI_LONG, next, addresses[next], EACH, MPI_LONG, window, &request), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < EACH; ++i) CHECK_EQ(found[i], sent[i]);
  for (int i = 0; i < EACH / 2; ++i) sent[i] = -i;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(MPI_Rput(sent, EACH / 2, MPI_LONG, next, addresses[next], 1, even, window, &request), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush(next, window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < EACH; ++i) CHECK_EQ(memory[i], i % 2 == 0 ? -i / 2 : 10000L * before + i);
  MPI_Win_unlock_all(window);
  MPI_Type_free(&even);
  free(sent);
  free(found);
}

/* Accumulates over all pieces from all ranks at once: no addition is lost, also where an element is in two pieces. */
static void add_across(MPI_Win window, long *memory, const MPI_Aint *addresses) {
  enum { ROUNDS = 20 };
  long *ones = malloc(EACH * sizeof(long)), *before = malloc(EACH * sizeof(long));
  const long one = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < EACH; ++i) {
    memory[i] = 5L * i;
    ones[i] = 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int rank = 0; rank < size_; ++rank) {
      const MPI_Aint place = addresses[rank];
      CHECK_EQ(MPI_Accumulate(ones, EACH, MPI_LONG, rank, place, EACH, MPI_LONG, MPI_SUM, window), MPI_SUCCESS);
      CHECK_EQ(MPI_Get_accumulate(ones, EACH, MPI_LONG, before, EACH, MPI_LONG, rank, place, EACH, MPI_LONG, MPI_SUM,
                                  window),
               MPI_SUCCESS);
      MPI_Win_flush(rank, window);
      for (int i = 0; i < EACH; ++i) CHECK(before[i] > 5L * i && before[i] < 5L * i + 3L * ROUNDS * size_);
      for (int i = 0; i < 10; ++i) {
        long found = -1;
        CHECK_EQ(MPI_Fetch_and_op(&one, &found, MPI_LONG, rank, place + (MPI_Aint)sizeof(long) * i, MPI_SUM, window),
                 MPI_SUCCESS);
        MPI_Win_flush(rank, window);
        CHECK(found >= 5L * i && found < 5L * i + 3L * ROUNDS * size_);
      }
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < EACH; ++i) CHECK_EQ(memory[i], 5L * i + (i < 10 ? 3L : 2L) * ROUNDS * size_);
  free(ones);
  free(before);
}

/* Pairs with padding go element by element. One that the first piece has in part only is an error. */
static void pairs_across(MPI_Win window) {
  enum { PAIRS = 20 };
  struct pair {
    double value;
    int index;
  } *pairs = calloc(PAIRS + 1, sizeof *pairs), sent[PAIRS];
  const int between[] = {0, 8 * sizeof *pairs, sizeof sent}, within[] = {8, 8 * sizeof *pairs, 8 + sizeof sent};
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  memset(sent, 0, sizeof sent);
  for (int i = 0; i < PAIRS; ++i) sent[i].value = 1 + i % 3, sent[i].index = rank_ + i;
  tell(pairs, addresses);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  for (int pass = 0; pass < 2; ++pass) {
    attach_pieces(window, (char *)pairs, pass == 0 ? between : within, 2);
    MPI_Win_fence(0, window);
    const MPI_Aint place = addresses[next] + 8 * pass;
    const int code =
        MPI_Accumulate(sent, PAIRS, MPI_DOUBLE_INT, next, place, PAIRS, MPI_DOUBLE_INT, MPI_MAXLOC, window);
    CHECK_EQ(class_of(code), pass == 0 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    for (int i = 0; i < PAIRS; ++i) CHECK(pairs[i].value == 1 + i % 3 && pairs[i].index == before + i);
    detach_pieces(window, (char *)pairs, pass == 0 ? between : within, 2);
  }
  MPI_Win_set_errhandler(window, MPI_ERRORS_ARE_FATAL);
  free(addresses);
  free(pairs);
}

/* Two pieces that adjoin each other, then three of odd lengths, so that numbers lie in two pieces. */
static void adjoining(MPI_Win window) {
  enum { BYTES = EACH * sizeof(long) };
  const int two[] = {0, 8 * 1000, BYTES}, three[] = {0, 8 * 3 + 4, 8 * 7 + 1, BYTES};
  long *memory = calloc(EACH, sizeof(long));
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  tell(memory, addresses);
  for (int pass = 0; pass < 2; ++pass) {
    const int *const limits = pass == 0 ? two : three;
    attach_pieces(window, (char *)memory, limits, 2 + pass);
    MPI_Barrier(MPI_COMM_WORLD);
    move_across(window, memory, addresses);
    add_across(window, memory, addresses);
    MPI_Barrier(MPI_COMM_WORLD);
    detach_pieces(window, (char *)memory, limits, 2 + pass);
  }
  free(addresses);
  free(memory);
}

/* An access over memory that is not attached is an error, and changes nothing. An access around it is none. */
static void gap(MPI_Win window) {
  enum { COUNT = 300 };
  const int first[] = {0, 400}, rest[] = {404, 800, COUNT * sizeof(int)};
  int *memory = calloc(COUNT, sizeof(int)), *sent = malloc(COUNT * sizeof(int)), *found = malloc(COUNT * sizeof(int));
  const int blocks[] = {100, COUNT - 101}, places[] = {0, 101};
  const int last = (rank_ + 1) % size_;
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  MPI_Datatype around;
  tell(memory, addresses);
  MPI_Type_indexed(2, blocks, places, MPI_INT, &around);
  MPI_Type_commit(&around);
  for (int i = 0; i < COUNT; ++i) sent[i] = found[i] = 7 + i;
  attach_pieces(window, (char *)memory, first, 1);
  attach_pieces(window, (char *)memory, rest, 2);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, window);
  const MPI_Aint to = addresses[last];
  CHECK_EQ(class_of(MPI_Put(sent, COUNT, MPI_INT, last, to, COUNT, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Get(found, COUNT, MPI_INT, last, to, COUNT, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Accumulate(sent, COUNT, MPI_INT, last, to, COUNT, MPI_INT, MPI_SUM, window)),
           MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put(sent, COUNT, MPI_INT, last, to + 404, COUNT, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  MPI_Win_fence(0, window);
  for (int i = 0; i < COUNT; ++i) CHECK(memory[i] == 0 && found[i] == 7 + i);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(MPI_Put(sent, COUNT - 1, MPI_INT, last, to, 1, around, window), MPI_SUCCESS);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(memory[i], i == 100 ? 0 : i < 100 ? 7 + i : 6 + i);
  detach_pieces(window, (char *)memory, first, 1);
  detach_pieces(window, (char *)memory, rest, 2);
  MPI_Type_free(&around);
  free(addresses);
  free(found);
  free(sent);
  free(memory);
}
#endif

/* The table is full after 1,024 pieces, and has room again when one of them is detached. */
static void too_many(MPI_Win window) {
#ifdef CANELE_MPI
  enum { MOST = 1024 };
  char *memory = malloc(MOST + 1);
  for (int i = 0; i < MOST; ++i) CHECK_EQ(MPI_Win_attach(window, memory + i, 1), MPI_SUCCESS);
  CHECK_EQ(class_of(MPI_Win_attach(window, memory + MOST, 1)), MPI_ERR_RMA_ATTACH);
  CHECK_EQ(MPI_Win_detach(window, memory + 7), MPI_SUCCESS);
  CHECK_EQ(MPI_Win_attach(window, memory + MOST, 1), MPI_SUCCESS);
  MPI_Aint *addresses = malloc(sizeof *addresses * (size_t)size_);
  const char sent = 'x';
  tell(memory, addresses);
  MPI_Win_fence(0, window);
  MPI_Put(&sent, 1, MPI_CHAR, (rank_ + 1) % size_, addresses[(rank_ + 1) % size_] + MOST, 1, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(memory[MOST], 'x');
  /* The rest is detached by MPI_Win_free. The memory lives until then. */
  free(addresses);
  MPI_Win_free(&window);
  free(memory);
#else
  MPI_Win_free(&window);
#endif
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Win window = make();
  void *base = &base;
  int *flavor, flag;
  MPI_Win_get_attr(window, MPI_WIN_BASE, &base, &flag);
  CHECK(flag && base == MPI_BOTTOM);
  MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
  CHECK(flag && *flavor == MPI_WIN_FLAVOR_DYNAMIC);
  pieces(window);
  again(window);
#ifdef CANELE_MPI
  adjoining(window);
  pairs_across(window);
  gap(window);
#endif
  errors(window);
  too_many(window);
  return finish();
}
