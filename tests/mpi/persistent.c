/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistent messages: inactive and active requests in every function that completes, frees or cancels.
 *
 * Run at any number of ranks. Each rank sends to the next one and receives from the one before.
 */
#include "check.h"

enum { ROUNDS = 20, LENGTH = 100000 };

static int next_, before_;

static void check_empty(const MPI_Status *status) {
  int count = -1, cancelled = -1;
  MPI_Get_count(status, MPI_INT, &count);
  MPI_Test_cancelled(status, &cancelled);
  CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && cancelled == 0);
}

/* No function waits for an inactive request, or forgets it. */
static void inactive(void) {
  int value = 0, flag = 0, index = 0, done = 0, indices[2];
  MPI_Request requests[2], copies[2];
  MPI_Status statuses[2];
  MPI_Recv_init(&value, 1, MPI_INT, before_, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(&value, 1, MPI_INT, next_, 1, MPI_COMM_WORLD, &requests[1]);
  memcpy(copies, requests, sizeof copies);
  MPI_Wait(&requests[0], &statuses[0]);
  check_empty(&statuses[0]);
  MPI_Test(&requests[1], &flag, &statuses[0]);
  check_empty(&statuses[0]);
  CHECK(flag);
  MPI_Waitall(2, requests, statuses);
  check_empty(&statuses[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  flag = 0;
  MPI_Testall(2, requests, &flag, statuses);
  check_empty(&statuses[0]);
  CHECK(flag);
  MPI_Waitany(2, requests, &index, &statuses[0]);
  check_empty(&statuses[0]);
  CHECK_EQ(index, MPI_UNDEFINED);
  index = flag = 0;
  MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
  CHECK(flag && index == MPI_UNDEFINED);
  MPI_Waitsome(2, requests, &done, indices, statuses);
  CHECK_EQ(done, MPI_UNDEFINED);
  done = 0;
  MPI_Testsome(2, requests, &done, indices, statuses);
  CHECK_EQ(done, MPI_UNDEFINED);
  CHECK(memcmp(requests, copies, sizeof copies) == 0);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
}

/* Completes the receive, requests[0], and the send, requests[1], in one of several ways. */
static void complete_both(MPI_Request *requests, int way, MPI_Status *status) {
  MPI_Status statuses[2];
  int flag = 0, index = 0, done = 0, seen = 0, indices[2];
  if (way == 0) {
    MPI_Wait(&requests[0], status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  } else if (way == 1) {
    MPI_Waitall(2, requests, statuses);
    *status = statuses[0];
  } else if (way == 2) {
    while (!flag) MPI_Testall(2, requests, &flag, statuses);
    *status = statuses[0];
  } else if (way == 3) {
    for (int i = 0; i < 2; ++i) {
      MPI_Waitany(2, requests, &index, &statuses[0]);
      if (index == 0) *status = statuses[0];
      seen |= 1 << index;
    }
    CHECK_EQ(seen, 3);
    MPI_Waitany(2, requests, &index, &statuses[0]);
    CHECK_EQ(index, MPI_UNDEFINED);
  } else {
    while (seen != 3) {
      MPI_Waitsome(2, requests, &done, indices, statuses);
      for (int i = 0; i < done; ++i) {
        if (indices[i] == 0) *status = statuses[i];
        CHECK((seen & 1 << indices[i]) == 0);
        seen |= 1 << indices[i];
      }
    }
  }
}

static void check_received(const MPI_Status *status, int tag, int length) {
  int count = -1;
  MPI_Get_count(status, MPI_CHAR, &count);
  CHECK_EQ(status->MPI_SOURCE, before_);
  CHECK_EQ(status->MPI_TAG, tag);
  CHECK_EQ(count, length);
}

static void ring(int length, int synchronous, int wildcard) {
  char *out = malloc(LENGTH), *in = malloc(LENGTH);
  MPI_Request requests[2];
  MPI_Recv_init(in, length, MPI_CHAR, wildcard ? MPI_ANY_SOURCE : before_, wildcard ? MPI_ANY_TAG : 7, MPI_COMM_WORLD,
                &requests[0]);
  (synchronous == 0   ? MPI_Send_init
   : synchronous == 1 ? MPI_Ssend_init
                      : MPI_Rsend_init)(out, length, MPI_CHAR, next_, 7, MPI_COMM_WORLD, &requests[1]);
  const MPI_Request receive = requests[0], send = requests[1];
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Status status;
    memset(in, 0, (size_t)length);
    fill(out, (size_t)length, round + rank_);
    MPI_Start(&requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&requests[1]);
    complete_both(requests, round % 5, &status);
    CHECK(requests[0] == receive && requests[1] == send);
    check_received(&status, 7, length);
    CHECK(matches(in, (size_t)length, round + before_));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

/* The datatype and the communicator are freed right after the request has been made. */
static void freed_meanwhile(void) {
  int out[8], in[8];
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Request requests[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(4, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Recv_init(in, 1, type, before_, 3, comm, &requests[0]);
  MPI_Send_init(out, 1, type, next_, 3, comm, &requests[1]);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 8; ++i) {
      out[i] = round * 100 + rank_ * 10 + i;
      in[i] = -1;
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 8; ++i) CHECK_EQ(in[i], i % 2 == 0 && i < 8 ? round * 100 + before_ * 10 + i : -1);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void null_process(void) {
  int value = 5;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Startall(2, requests);
    MPI_Wait(&requests[0], &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && value == 5);
    MPI_Wait(&requests[0], &status);
    check_empty(&status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void cancelled(void) {
  int value = 0, flag = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Recv_init(&value, 1, MPI_INT, before_, 9, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request != MPI_REQUEST_NULL);
  }
  MPI_Request_free(&request);
}

/* More requests than the fast path takes at once, in groups of several sizes. */
static void many(void) {
  enum { PAIRS = 50 };
  int in[PAIRS], out[PAIRS];
  const int groups[] = {1, 3, 64, 65, 2 * PAIRS};
  MPI_Request requests[2 * PAIRS];
  for (int i = 0; i < PAIRS; ++i) {
    MPI_Recv_init(&in[i], 1, MPI_INT, before_, 20 + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send_init(&out[i], 1, MPI_INT, next_, 20 + i, MPI_COMM_WORLD, &requests[PAIRS + i]);
  }
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < PAIRS; ++i) {
      out[i] = 1000 * rank_ + 10 * i + round;
      in[i] = -1;
    }
    MPI_Startall(2 * PAIRS, requests);
    for (int begin = 0; begin < 2 * PAIRS; begin += groups[round]) {
      const int count = begin + groups[round] < 2 * PAIRS ? groups[round] : 2 * PAIRS - begin;
      MPI_Waitall(count, requests + begin, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < PAIRS; ++i) CHECK_EQ(in[i], 1000 * before_ + 10 * i + round);
  }
  for (int i = 0; i < 2 * PAIRS; ++i) MPI_Request_free(&requests[i]);
}

/* A request that is freed while it is active ends by itself. */
static void freed_while_active(void) {
  int in = -1, out = rank_, token = 0;
  MPI_Request requests[2];
  MPI_Recv_init(&in, 1, MPI_INT, before_, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(&out, 1, MPI_INT, next_, 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Request_free(&requests[1]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  CHECK_EQ(in, before_);
  MPI_Start(&requests[0]);
  MPI_Request_free(&requests[0]);
  MPI_Send(&out, 1, MPI_INT, next_, 4, MPI_COMM_WORLD);
  MPI_Sendrecv(&token, 1, MPI_INT, next_, 5, &token, 1, MPI_INT, before_, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A message that does not fit is an error of its request, which can be started again. */
static void truncated(void) {
  int in = -1, out[2] = {rank_, 7}, other = rank_, got = -1;
  MPI_Request requests[4];
  MPI_Recv_init(&got, 1, MPI_INT, before_, 10, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, before_, 11, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(&other, 1, MPI_INT, next_, 10, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(out, 2, MPI_INT, next_, 11, MPI_COMM_WORLD, &requests[3]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 3; ++round) {
    in = got = -1;
    CHECK_EQ(MPI_Startall(4, requests), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)), MPI_ERR_IN_STATUS);
    CHECK(in == before_ && got == before_);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
}

static void wrong_calls(void) {
  int value = 0;
  MPI_Request request, null = MPI_REQUEST_NULL, ordinary;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Start(&null)), MPI_ERR_REQUEST);
  MPI_Irecv(&value, 1, MPI_INT, rank_, 6, MPI_COMM_WORLD, &ordinary);
  CHECK_EQ(class_of(MPI_Start(&ordinary)), MPI_ERR_REQUEST);
  MPI_Cancel(&ordinary);
  MPI_Wait(&ordinary, MPI_STATUS_IGNORE);
  MPI_Recv_init(&value, 1, MPI_INT, rank_, 6, MPI_COMM_WORLD, &request);
  CHECK_EQ(class_of(MPI_Cancel(&request)), MPI_ERR_REQUEST);
  MPI_Start(&request);
  CHECK_EQ(class_of(MPI_Start(&request)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Startall(1, &request)), MPI_ERR_REQUEST);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(class_of(MPI_Startall(2, (MPI_Request[]){request, null})), MPI_ERR_REQUEST);    /* and starts none */
  CHECK_EQ(class_of(MPI_Startall(2, (MPI_Request[]){request, request})), MPI_ERR_REQUEST); /* starts it once */
  CHECK_EQ(class_of(MPI_Startall(-1, &request)), MPI_ERR_COUNT);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  CHECK_EQ(class_of(MPI_Send_init(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Send_init(&value, 1, MPI_INT, size_, 0, MPI_COMM_WORLD, &request)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Send_init(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD, &request)), MPI_ERR_TAG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  next_ = (rank_ + 1) % size_;
  before_ = (rank_ + size_ - 1) % size_;
  inactive();
  for (int synchronous = 0; synchronous < 3; ++synchronous) {
    ring(1, synchronous, 0);
    ring(LENGTH, synchronous, 1);
  }
  freed_meanwhile();
  null_process();
  cancelled();
  freed_while_active();
  many();
  truncated();
  wrong_calls();
  return finish();
}
