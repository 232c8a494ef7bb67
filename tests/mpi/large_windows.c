/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The forms of the functions on windows for large counts: the same operations as the other forms, and counts above the
 * range of an int. One thread.
 */
#include "check.h"

#if MPI_VERSION >= 4

enum { LENGTH = 6 };
static const MPI_Count huge_count = (MPI_Count)1 << 40;

/* Every rank works on the part of its right neighbor, which no other rank accesses. */
static void operations(MPI_Win window, int *part) {
  const int right = (rank_ + 1) % size_;
  int mine[LENGTH], got[LENGTH];
  MPI_Request requests[2];
  for (int i = 0; i < LENGTH; ++i) mine[i] = 10 * rank_ + i;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window);
  CHECK_EQ(MPI_Put_c(mine, 3, MPI_INT, right, 0, 3, MPI_INT, window), MPI_SUCCESS);
  CHECK_EQ(MPI_Rput_c(mine + 3, 3, MPI_INT, right, 3, 3, MPI_INT, window, &requests[0]), MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_flush(right, window);
  CHECK_EQ(MPI_Get_c(got, 2, MPI_INT, right, 0, 2, MPI_INT, window), MPI_SUCCESS);
  CHECK_EQ(MPI_Rget_c(got + 2, 4, MPI_INT, right, 2, 4, MPI_INT, window, &requests[0]), MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_flush(right, window);
  CHECK(memcmp(got, mine, sizeof mine) == 0);

  CHECK_EQ(MPI_Accumulate_c(mine, LENGTH, MPI_INT, right, 0, LENGTH, MPI_INT, MPI_SUM, window), MPI_SUCCESS);
  CHECK_EQ(MPI_Raccumulate_c(mine, LENGTH, MPI_INT, right, 0, LENGTH, MPI_INT, MPI_SUM, window, &requests[0]),
           MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  CHECK_EQ(MPI_Get_accumulate_c(NULL, 0, MPI_INT, got, LENGTH, MPI_INT, right, 0, LENGTH, MPI_INT, MPI_NO_OP, window),
           MPI_SUCCESS);
  MPI_Win_flush(right, window);
  for (int i = 0; i < LENGTH; ++i) CHECK_EQ(got[i], 3 * mine[i]);
  CHECK_EQ(MPI_Rget_accumulate_c(mine, LENGTH, MPI_INT, got, LENGTH, MPI_INT, right, 0, LENGTH, MPI_INT, MPI_REPLACE,
                                 window, &requests[0]),
           MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_unlock(right, window);
  for (int i = 0; i < LENGTH; ++i) CHECK_EQ(got[i], 3 * mine[i]);

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, window);
  const int left = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < LENGTH; ++i) CHECK_EQ(part[i], 10 * left + i);
  MPI_Win_unlock(rank_, window);
}

/* A count that an int would cut to 0 is beyond the window. */
static void beyond(MPI_Win window) {
  int value = 0;
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  CHECK_EQ(class_of(MPI_Put_c(&value, huge_count, MPI_INT, 0, 0, huge_count, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Get_c(&value, 1, MPI_INT, 0, 0, huge_count, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Accumulate_c(&value, 1, MPI_INT, 0, 0, huge_count, MPI_INT, MPI_SUM, window)),
           MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put_c(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, window)), MPI_ERR_COUNT);
  MPI_Datatype wide; /* elements whose distances do not fit 64 bits */
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 40, &wide);
  MPI_Type_commit(&wide);
  CHECK_EQ(class_of(MPI_Get_c(&value, 1, MPI_INT, 0, 0, huge_count, wide, window)), MPI_ERR_RMA_RANGE);
  MPI_Type_free(&wide);
  MPI_Win_unlock(0, window);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Win window;
  int memory[LENGTH] = {0}, *part = memory;
  MPI_Win_create_c(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  operations(window, part);
  beyond(window);
  MPI_Win_free(&window);
  MPI_Win_allocate_c(sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  operations(window, part);
  MPI_Win_free(&window);

  MPI_Win_allocate_shared_c(sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
  operations(window, part);
  MPI_Aint size, unit;
  int *found;
  MPI_Win_shared_query_c(window, rank_, &size, &unit, &found);
  CHECK(size == sizeof memory && unit == sizeof *memory && found == part);
  MPI_Win_free(&window);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Win_create_c(memory, sizeof memory, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &window)), MPI_ERR_DISP);
#ifdef CANELE_MPI /* the attribute MPI_WIN_DISP_UNIT is an int */
  CHECK_EQ(class_of(MPI_Win_create_c(memory, 8, huge_count, MPI_INFO_NULL, MPI_COMM_WORLD, &window)), MPI_ERR_DISP);
#endif
  return finish();
}

#else
int main(void) { return 0; }
#endif
