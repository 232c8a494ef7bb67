/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.h - the few helpers of the MPI test programs. They run on any MPI, which is how the tests themselves are
 * tested. Any thread.
 *
 * A failed check ends the whole job at once: the other ranks would wait for ever.
 */
#ifndef CANELE_TESTS_MPI_CHECK_H
#define CANELE_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank_, size_;

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "rank %d: %s:%d: check failed: %s\n", rank_, __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                 \
    }                                                                                               \
  } while (0)

#define CHECK_EQ(actual, expected)                                                                                 \
  do {                                                                                                             \
    const long long actual_ = (long long)(actual), expected_ = (long long)(expected);                              \
    if (actual_ != expected_) {                                                                                    \
      fprintf(stderr, "rank %d: %s:%d: %s is %lld instead of %lld\n", rank_, __FILE__, __LINE__, #actual, actual_, \
              expected_);                                                                                          \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                                \
    }                                                                                                              \
  } while (0)

static inline void start(int *argc, char ***argv) {
  int provided;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
}

static inline int finish(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}

/* Returns the error class of a code. */
static inline int class_of(int code) {
  int result = -1;
  MPI_Error_class(code, &result);
  return result;
}

/* Returns a byte of a pattern that depends on all arguments. */
static inline unsigned char pattern(size_t i, int seed) {
  return (unsigned char)(i * 31 + (i >> 9) * 7 + (size_t)seed * 17);
}

static inline void fill(void *buffer, size_t length, int seed) {
  for (size_t i = 0; i < length; ++i) ((unsigned char *)buffer)[i] = pattern(i, seed);
}

static inline int matches(const void *buffer, size_t length, int seed) {
  for (size_t i = 0; i < length; ++i) {
    if (((const unsigned char *)buffer)[i] != pattern(i, seed)) return 0;
  }
  return 1;
}

#endif
