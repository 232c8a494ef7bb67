/* SPDX-License-Identifier: BSD-3-Clause
 *
 * both.h - each collective in its two forms from one line of a test: blocking, and started and completed. One thread.
 *
 * The variable later_ selects the form, so that a program runs all of its tests twice.
 */
#ifndef CANELE_TESTS_MPI_BOTH_H
#define CANELE_TESTS_MPI_BOTH_H

#include <sched.h>

#include "check.h"

static int later_;

/* Waits and tests alternately. */
static inline void complete(MPI_Request *request) {
  static int turn;
  MPI_Status status;
  int flag = 0, cancelled = 1;
  if (++turn % 2 == 0) {
    CHECK_EQ(MPI_Wait(request, &status), MPI_SUCCESS);
  } else {
    for (;;) {
      CHECK_EQ(MPI_Test(request, &flag, &status), MPI_SUCCESS);
      if (flag) break;
      sched_yield();
    }
  }
  CHECK(*request == MPI_REQUEST_NULL);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQ(cancelled, 0);
}

/* DO(Gather, gather, arguments...): MPI_Gather(arguments...), or MPI_Igather and its completion. */
#define DO(name, lower, ...)                                       \
  do {                                                             \
    if (later_) {                                                  \
      MPI_Request request_ = MPI_REQUEST_NULL;                     \
      CHECK_EQ(MPI_I##lower(__VA_ARGS__, &request_), MPI_SUCCESS); \
      complete(&request_);                                         \
    } else {                                                       \
      CHECK_EQ(MPI_##name(__VA_ARGS__), MPI_SUCCESS);              \
    }                                                              \
  } while (0)

/* Runs the same tests on all ranks, on each alone, and on a part in reverse order; blocking and not. */
static inline void on_all_communicators(void (*tests)(MPI_Comm comm, int rank, int size)) {
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
  MPI_Comm_split(MPI_COMM_WORLD, rank_ > 0, size_ - rank_, &comms[2]);
  for (int i = 0; i < 6; ++i) {
    int rank, size;
    MPI_Comm comm = comms[i % 3];
    later_ = i / 3;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    tests(comm, rank, size);
  }
  MPI_Comm_free(&comms[2]);
}

#endif
