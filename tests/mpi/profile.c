/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profile.c - a known number of calls of each class, by two threads, with calls inside calls: what CANELE_PROFILE must
 * have counted. run_mpi.py, class Profile, reads the files. The second thread sends to its own rank.
 *
 * MPI_Type_size is called by the operator, inside MPI_Reduce_local: its time may not count twice.
 */
#include <pthread.h>

#include "check.h"

enum { rounds = 5, tests = 7, from_operator = 3, by_thread = 4 };

static volatile double sink;
static MPI_Op counted;

static void compute(int turns) {
  for (int i = 0; i < turns; ++i) sink = sink * 0.5 + i;
}

/* Calls MPI, and takes its time. */
static void operate(void *in, void *inout, int *length, MPI_Datatype *type) {
  int ignored;
  (void)type;
  for (int i = 0; i < from_operator; ++i) MPI_Type_size(MPI_INT, &ignored);
  compute(200000);
  for (int i = 0; i < *length; ++i) ((int *)inout)[i] += ((int *)in)[i];
}

static void *sends_to_itself(void *unused) {
  int there = 1, back = 0;
  (void)unused;
  for (int i = 0; i < by_thread; ++i) {
    MPI_Sendrecv(&there, 1, MPI_INT, rank_, 9, &back, 1, MPI_INT, rank_, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  CHECK_EQ(back, 1);
  return NULL;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  const int next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_;
  int value = rank_, other = -1, sum = 0, flag = 0;
  for (int i = 0; i < rounds; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(&other, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&value, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);
    compute(100000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(other, previous);
  }
  for (int i = 0; i < tests; ++i) {
    MPI_Request nothing = MPI_REQUEST_NULL;
    MPI_Test(&nothing, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Op_create(operate, 1, &counted);
  MPI_Reduce_local(&value, &sum, 1, MPI_INT, counted);
  MPI_Op_free(&counted);
  CHECK_EQ(sum, rank_);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, sends_to_itself, NULL), 0);
  pthread_join(thread, NULL);
  return finish();
}
