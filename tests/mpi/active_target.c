/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Post, start, complete, wait and test: groups of origins and targets.
 */
#include <sched.h>

#include "check.h"

static MPI_Group group_of(int count, const int *ranks) {
  MPI_Group world, part;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, count, ranks, &part);
  MPI_Group_free(&world);
  return part;
}

static void free_group(MPI_Group *group) {
  if (*group != MPI_GROUP_EMPTY) MPI_Group_free(group);
}

/* Waits by MPI_Win_wait, or by MPI_Win_test. */
static void await(MPI_Win window, int tests) {
  if (!tests) {
    MPI_Win_wait(window);
    return;
  }
  for (int flag = 0; !flag;) {
    MPI_Win_test(window, &flag);
    if (!flag) sched_yield();
  }
}

/* Each rank writes to the next and reads from it, at once a target of the one before. */
static void ring(int tests, size_t length) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  unsigned char *part = calloc(1, length), *data = malloc(length), *copy = malloc(length);
  MPI_Win window;
  MPI_Group origins = group_of(1, &before), targets = group_of(1, &next);
  MPI_Win_create(part, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int round = 0; round < 20; ++round) {
    fill(data, length, rank_ + round);
    MPI_Win_post(origins, 0, window);
    MPI_Win_start(targets, 0, window);
    MPI_Put(data, (int)length, MPI_BYTE, next, 0, (int)length, MPI_BYTE, window);
    MPI_Win_complete(window);
    await(window, tests);
    CHECK(matches(part, length, before + round));
    memset(copy, 0, length);
    MPI_Win_post(origins, MPI_MODE_NOPUT, window);
    MPI_Win_start(targets, 0, window);
    MPI_Get(copy, (int)length, MPI_BYTE, next, 0, (int)length, MPI_BYTE, window);
    MPI_Win_complete(window);
    await(window, tests);
    memset(part, 0, length); /* no get reads it any more */
    CHECK(matches(copy, length, rank_ + round));
  }
  MPI_Win_free(&window);
  free_group(&origins);
  free_group(&targets);
  free(part);
  free(data);
  free(copy);
}

/* All other ranks write to the first one. Then it writes to all of them. */
static void gather_and_scatter(void) {
  int *parts = NULL, *others = malloc(sizeof *others * (size_t)size_);
  const int root = 0;
  for (int i = 1; i < size_; ++i) others[i - 1] = i;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)sizeof *parts * size_, sizeof *parts, MPI_INFO_NULL, MPI_COMM_WORLD, &parts, &window);
  MPI_Group all_but_root = group_of(size_ - 1, others), only_root = group_of(1, &root);
  for (int round = 1; round <= 50; ++round) {
    const int value = 100 * round + rank_;
    if (rank_ == root) {
      MPI_Win_post(all_but_root, 0, window);
      MPI_Win_wait(window);
      for (int rank = 1; rank < size_; ++rank) CHECK_EQ(parts[rank], 100 * round + rank);
      MPI_Win_start(all_but_root, 0, window);
      for (int rank = 1; rank < size_; ++rank) MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, window);
      MPI_Win_complete(window);
    } else {
      MPI_Win_start(only_root, 0, window);
      MPI_Put(&value, 1, MPI_INT, root, rank_, 1, MPI_INT, window);
      MPI_Win_complete(window);
      MPI_Win_post(only_root, MPI_MODE_NOSTORE, window);
      MPI_Win_wait(window);
      CHECK_EQ(parts[0], 100 * round);
    }
  }
  MPI_Win_free(&window);
  free_group(&all_but_root);
  free_group(&only_root);
  free(others);
}

/* Posts that the program knows of need no message. */
static void without_checks(void) {
  int part[2] = {-1, -1};
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  MPI_Win window;
  MPI_Group origins = group_of(1, &before), targets = group_of(1, &next);
  MPI_Win_create(part, sizeof part, sizeof part[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int round = 0; round < 10; ++round) {
    const int value = rank_ * 10 + round;
    MPI_Win_post(origins, MPI_MODE_NOCHECK, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_start(targets, MPI_MODE_NOCHECK, window);
    MPI_Put(&value, 1, MPI_INT, next, round % 2, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    CHECK_EQ(part[round % 2], before * 10 + round);
  }
  MPI_Win_free(&window);
  free_group(&origins);
  free_group(&targets);
}

/* Groups without ranks, and an epoch without operations. */
static void nothing_to_do(void) {
  int value = 0;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_post(MPI_GROUP_EMPTY, 0, window);
  MPI_Win_start(MPI_GROUP_EMPTY, 0, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Win_get_group(window, &all);
  MPI_Win_post(all, 0, window);
  MPI_Win_start(all, 0, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  MPI_Group_free(&all);
  /* Other kinds of epochs follow. */
  MPI_Win_fence(0, window);
  MPI_Put(&rank_, 1, MPI_INT, rank_, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(value, rank_);
  MPI_Win_free(&window);
}

static void errors(void) {
  int value = 0, flag = 7;
  MPI_Win window;
  MPI_Group self = group_of(1, &rank_);
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
#ifdef CANELE_MPI /* Open MPI 4.1 detects no complete without a start */
  CHECK_EQ(class_of(MPI_Win_complete(window)), MPI_ERR_RMA_SYNC);
#endif
  CHECK_EQ(class_of(MPI_Win_wait(window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_test(window, &flag)), MPI_ERR_RMA_SYNC);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Win_post(MPI_GROUP_NULL, 0, window)), MPI_ERR_GROUP);
  CHECK_EQ(class_of(MPI_Win_start(MPI_GROUP_NULL, 0, window)), MPI_ERR_GROUP);
  CHECK_EQ(class_of(MPI_Win_post(self, MPI_MODE_NOPRECEDE, window)), MPI_ERR_ASSERT);
  CHECK_EQ(class_of(MPI_Win_start(self, MPI_MODE_NOSTORE, window)), MPI_ERR_ASSERT);
#endif
  MPI_Win_post(self, 0, window);
  CHECK_EQ(class_of(MPI_Win_post(self, 0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_fence(0, window)), MPI_ERR_RMA_SYNC);
#ifdef CANELE_MPI /* Open MPI 4.1 frees the window */
  CHECK_EQ(class_of(MPI_Win_free(&window)), MPI_ERR_RMA_SYNC);
#endif
  MPI_Win_start(self, 0, window);
  CHECK_EQ(class_of(MPI_Win_start(self, 0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, window)), MPI_ERR_RMA_SYNC);
  if (size_ > 1)
    CHECK_EQ(class_of(MPI_Put(&rank_, 1, MPI_INT, (rank_ + 1) % size_, 0, 1, MPI_INT, window)), MPI_ERR_RMA_SYNC);
  MPI_Win_test(window, &flag);
  CHECK_EQ(flag, 0);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  CHECK_EQ(value, 0);
  MPI_Win_free(&window);
  free_group(&self);
}

int main(int argc, char **argv) {
  static const size_t lengths[] = {1, 1000, 100000};
  start(&argc, &argv);
  for (int tests = 0; tests < 2; ++tests) {
    for (int i = 0; i < 3; ++i) ring(tests, lengths[i]);
  }
  gather_and_scatter();
  without_checks();
  nothing_to_do();
  errors();
  return finish();
}
