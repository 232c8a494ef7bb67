/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic windows: memory that ranks attach and detach while the window is in use.
 */
#include "check.h"

static int class_of(int code) {
  int result;
  MPI_Error_class(code, &result);
  return result;
}

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
  errors(window);
  too_many(window);
  return finish();
}
