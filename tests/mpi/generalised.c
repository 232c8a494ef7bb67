/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generalised requests, and statuses: of requests that are kept, their fields, and their forms in Fortran.
 *
 * Run at any number of ranks. The requests of a rank are completed by another thread of it.
 */
#include <pthread.h>

#include "check.h"

typedef struct State {
  int queries, frees, cancels;
} State;

static int query(void *extra, MPI_Status *status) {
  State *state = extra;
  ++state->queries;
  MPI_Status_set_cancelled(status, state->cancels > 0);
  status->MPI_SOURCE = 3;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}

static int free_state(void *extra) {
  ++((State *)extra)->frees;
  return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
  if (!complete) ++((State *)extra)->cancels;
  return MPI_SUCCESS;
}

static void *complete(void *request) {
  MPI_Grequest_complete(*(MPI_Request *)request);
  return NULL;
}

/* Completes the request in another thread, while this one waits in one of several ways. */
static void completed_elsewhere(int way) {
  State state = {0, 0, 0};
  MPI_Request request, copy;
  MPI_Status status;
  pthread_t thread;
  int flag = 0, index = -1;
  MPI_Grequest_start(query, free_state, cancel, &state, &request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag && state.queries == 0);
  copy = request;
  pthread_create(&thread, NULL, complete, &copy);
  if (way == 0) MPI_Wait(&request, &status);
  if (way == 1) MPI_Waitall(1, &request, &status);
  if (way == 2) MPI_Waitany(1, &request, &index, &status);
  if (way == 3) MPI_Waitsome(1, &request, &index, &flag, &status);
  if (way == 4) {
    while (!flag) MPI_Test(&request, &flag, &status);
  }
  if (way == 5) MPI_Wait(&request, MPI_STATUS_IGNORE);
  pthread_join(thread, NULL);
  CHECK(request == MPI_REQUEST_NULL && state.frees == 1 && state.queries == 1);
  if (way < 5) CHECK(status.MPI_SOURCE == 3 && status.MPI_TAG == 4);
}

static void cancelled_and_freed(void) {
  State state = {0, 0, 0};
  MPI_Request request, copy;
  MPI_Status status;
  int flag = 0;
  MPI_Grequest_start(query, free_state, cancel, &state, &request);
  MPI_Cancel(&request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag && state.cancels == 1 && state.frees == 1);
  MPI_Grequest_start(query, free_state, cancel, &state, &request);
  copy = request;
  MPI_Request_free(&request);
  CHECK(request == MPI_REQUEST_NULL && state.frees == 1);
  MPI_Grequest_complete(copy);
  while (state.frees == 1) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK_EQ(state.frees, 2);
}

static void kept(void) {
  int in = -1, out = rank_, flag = 1, count = -1;
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Request_get_status(request, &flag, &status);
  CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE);
  MPI_Irecv(&in, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &request);
  MPI_Request_get_status(request, &flag, &status);
  CHECK(!flag);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&out, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
  while (!flag) MPI_Request_get_status(request, &flag, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(in == before && status.MPI_SOURCE == before && status.MPI_TAG == 3 && count == 1);
  MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  CHECK(flag && request != MPI_REQUEST_NULL);
  memset(&status, 0, sizeof status);
  MPI_Wait(&request, &status);
  CHECK(status.MPI_SOURCE == before && request == MPI_REQUEST_NULL);
}

/* The results of a collective are there when its status says that it is done, and stay as the program changes them. */
static void kept_collective(void) {
  int in[4] = {-1, -1, -1, -1}, out = 1, flag = 0;
  MPI_Request request;
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, 8, &type);
  MPI_Type_commit(&type);
  MPI_Ibcast(rank_ == 0 ? memcpy(in, (int[]){7, -1, 8, -1}, sizeof in) : in, 2, type, 0, MPI_COMM_WORLD, &request);
  while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  CHECK(in[0] == 7 && in[1] == -1 && in[2] == 8);
  in[0] = out;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(in[0], 1);
  MPI_Type_free(&type);
}

#ifdef CANELE_MPI
static void several_kept(void) {
  int value = 0, flag = 1, index = 0, done = 0, indices[3];
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  MPI_Request_get_status_any(3, requests, &index, &flag, statuses);
  CHECK(flag && index == MPI_UNDEFINED);
  MPI_Request_get_status_some(3, requests, &done, indices, statuses);
  CHECK_EQ(done, MPI_UNDEFINED);
  MPI_Irecv(&value, 1, MPI_INT, rank_, 50, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 50, MPI_COMM_WORLD, &requests[2]);
  MPI_Request_get_status_all(3, requests, &flag, statuses);
  CHECK(!flag);
  MPI_Request_get_status_any(3, requests, &index, &flag, statuses);
  CHECK(flag && index == 2 && statuses[0].MPI_SOURCE == MPI_PROC_NULL);
  MPI_Request_get_status_some(3, requests, &done, indices, MPI_STATUSES_IGNORE);
  CHECK(done == 1 && indices[0] == 2);
  MPI_Send(&flag, 1, MPI_INT, rank_, 50, MPI_COMM_WORLD);
  for (flag = 0; !flag;) MPI_Request_get_status_all(3, requests, &flag, statuses);
  CHECK(statuses[0].MPI_TAG == 50 && statuses[1].MPI_SOURCE == MPI_ANY_SOURCE);
  MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void fields(void) {
  int source = 0, tag = 0, error = 0;
  MPI_Status status, other;
  MPI_F08_status f08;
  MPI_Fint f[MPI_F_STATUS_SIZE], g[MPI_F_STATUS_SIZE];
  memset(&status, 0, sizeof status);
  MPI_Status_set_source(&status, 5);
  MPI_Status_set_tag(&status, 6);
  MPI_Status_set_error(&status, MPI_ERR_TAG);
  MPI_Status_get_source(&status, &source);
  MPI_Status_get_tag(&status, &tag);
  MPI_Status_get_error(&status, &error);
  CHECK(source == 5 && tag == 6 && error == MPI_ERR_TAG);
  MPI_Status_c2f(&status, f);
  CHECK(f[MPI_F_SOURCE] == 5 && f[MPI_F_TAG] == 6 && f[MPI_F_ERROR] == MPI_ERR_TAG);
  MPI_Status_f2f08(f, &f08);
  MPI_Status_f082f(&f08, g);
  MPI_Status_f2c(g, &other);
  CHECK(memcmp(&status, &other, sizeof status) == 0);
  MPI_Status_c2f08(&status, &f08);
  CHECK(f08.MPI_SOURCE == 5 && f08.MPI_TAG == 6);
  memset(&other, 0, sizeof other);
  MPI_Status_f082c(&f08, &other);
  CHECK(memcmp(&status, &other, sizeof status) == 0);
}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int round = 0; round < 60; ++round) completed_elsewhere(round % 6);
  cancelled_and_freed();
  kept();
  kept_collective();
#ifdef CANELE_MPI
  several_kept();
  fields();
#endif
  return finish();
}
