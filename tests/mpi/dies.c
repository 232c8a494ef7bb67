/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ends badly on purpose; the test checks the exit code and the message. Argument: how.
 */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

/* Reads from a pipe to which nothing is written. The stream is locked meanwhile. */
static void *read_for_ever(void *argument) { return (void *)(intptr_t)fgetc(argument); }

static void lock_a_stream(void) {
  int ends[2];
  pthread_t thread;
  FILE *stream;
  CHECK(pipe(ends) == 0);
  stream = fdopen(ends[0], "r");
  CHECK(pthread_create(&thread, NULL, read_for_ever, stream) == 0);
  while (ftrylockfile(stream) == 0) { /* until the thread has it */
    funlockfile(stream);
    sched_yield();
  }
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  int value = 0;
  if (strcmp(how, "before-init") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &value);
  start(&argc, &argv);
  printf("last words of rank %d\n", rank_); /* into a buffer, unless this is a terminal */
  if (strcmp(how, "abort-locked") == 0 && rank_ == size_ - 1) {
    lock_a_stream();
    MPI_Abort(MPI_COMM_WORLD, 7);
  }
  if (strcmp(how, "abort") == 0 && rank_ == size_ - 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(how, "wrong-rank") == 0 && rank_ == 0) MPI_Send(&value, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
#ifdef CANELE_MPI
  if (strcmp(how, "errors-abort") == 0 && rank_ == 1) {
    MPI_Comm copy;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_call_errhandler(copy, MPI_ERR_TAG);
  }
#endif
  if (strcmp(how, "unequal") == 0) {
    MPI_Request request;
    int *values = calloc(200, sizeof *values);
    MPI_Ibcast(values, rank_ == 0 ? 100 : 200, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(how, "after-finalize") == 0) {
    finish();
    MPI_Comm_size(MPI_COMM_WORLD, &value);
  }
  MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* no rank sends: must be ended */
  return 0;
}
