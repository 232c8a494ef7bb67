/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nulls.c and nulls_windows.c share: the check of a call with NULL, and arguments for such calls. One thread. */
#ifndef CANELE_TEST_NULLS_H
#define CANELE_TEST_NULLS_H

#include "check.h"

static const char *now = "none";

/* Checks that the call returns MPI_ERR_ARG. */
#define REFUSED(call)                                                             \
  do {                                                                            \
    int class_ = -1;                                                              \
    now = #call;                                                                  \
    printf("%s\n", now);                                                          \
    fflush(stdout); /* the last line says which it was, if it crashes */          \
    MPI_Error_class((call), &class_);                                             \
    if (class_ != MPI_ERR_ARG) {                                                  \
      fprintf(stderr, "%s gives class %d instead of MPI_ERR_ARG\n", now, class_); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                               \
    }                                                                             \
  } while (0)

static int value, other;
static MPI_Aint address;
static char text[MPI_MAX_ERROR_STRING];
static const int one = 1, zero = 0;

#endif
