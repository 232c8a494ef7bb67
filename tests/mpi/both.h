/* SPDX-License-Identifier: BSD-3-Clause
 *
 * both.h - each collective in its forms from one line of a test: blocking, started and completed, persistent, and these
 * for large counts. One thread.
 *
 * The variable form_ selects the form, so that a program runs all of its tests in each form.
 */
#ifndef CANELE_TESTS_MPI_BOTH_H
#define CANELE_TESTS_MPI_BOTH_H

#include <sched.h>

#include "check.h"

/* MPI-4.0 has persistent collectives, and forms for large counts. */
#if MPI_VERSION >= 4 || defined(CANELE_MPI)
enum { SMALL_FORMS = 3, ALL_FORMS = 6 };
#else
enum { SMALL_FORMS = 2, ALL_FORMS = 2 };
#endif

static int form_;

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
  CHECK(form_ % 3 == 2 || *request == MPI_REQUEST_NULL);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQ(cancelled, 0);
}

#define STARTED_(function, ...)                              \
  do {                                                       \
    MPI_Request request_ = MPI_REQUEST_NULL;                 \
    CHECK_EQ(function(__VA_ARGS__, &request_), MPI_SUCCESS); \
    complete(&request_);                                     \
  } while (0)

#define PERSISTENT_(function, ...)                                          \
  do {                                                                      \
    MPI_Request request_ = MPI_REQUEST_NULL;                                \
    CHECK_EQ(function(__VA_ARGS__, MPI_INFO_NULL, &request_), MPI_SUCCESS); \
    CHECK_EQ(MPI_Start(&request_), MPI_SUCCESS);                            \
    complete(&request_);                                                    \
    CHECK_EQ(MPI_Request_free(&request_), MPI_SUCCESS);                     \
  } while (0)

#if MPI_VERSION >= 4 || defined(CANELE_MPI)
#define IN_FORM_(form, blocking, started, persistent, ...) \
  do {                                                     \
    if ((form) == 0) {                                     \
      CHECK_EQ(blocking(__VA_ARGS__), MPI_SUCCESS);        \
    } else if ((form) == 1) {                              \
      STARTED_(started, __VA_ARGS__);                      \
    } else {                                               \
      PERSISTENT_(persistent, __VA_ARGS__);                \
    }                                                      \
  } while (0)
/* DO(Gather, gather, arguments...): MPI_Gather(arguments...), or another of its forms for large counts. For functions
 * without arrays of counts. */
#define DO(name, lower, ...)                                                                   \
  do {                                                                                         \
    if (form_ < 3) {                                                                           \
      DO_SMALL(name, lower, __VA_ARGS__);                                                      \
    } else {                                                                                   \
      IN_FORM_(form_ - 3, MPI_##name##_c, MPI_I##lower##_c, MPI_##name##_init_c, __VA_ARGS__); \
    }                                                                                          \
  } while (0)
/* The same for functions that have arrays of counts, or no counts. */
#define DO_SMALL(name, lower, ...) IN_FORM_(form_ % 3, MPI_##name, MPI_I##lower, MPI_##name##_init, __VA_ARGS__)
#else
#define DO_SMALL(name, lower, ...)                    \
  do {                                                \
    if (form_ == 0) {                                 \
      CHECK_EQ(MPI_##name(__VA_ARGS__), MPI_SUCCESS); \
    } else {                                          \
      STARTED_(MPI_I##lower, __VA_ARGS__);            \
    }                                                 \
  } while (0)
#define DO DO_SMALL
#endif

/* Runs the same tests on all ranks, on each alone, and on a part in reverse order, in the first forms. */
static inline void on_all_communicators(int forms, void (*tests)(MPI_Comm comm, int rank, int size)) {
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
  MPI_Comm_split(MPI_COMM_WORLD, rank_ > 0, size_ - rank_, &comms[2]);
  for (form_ = 0; form_ < forms; ++form_) {
    for (int i = 0; i < 3; ++i) {
      int rank, size;
      MPI_Comm_rank(comms[i], &rank);
      MPI_Comm_size(comms[i], &size);
      tests(comms[i], rank, size);
    }
  }
  form_ = 1;
  MPI_Comm_free(&comms[2]);
}

#endif
