/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wait and test for one, all, any and some; probing; cancelling; freeing requests early.
 */
#include "check.h"

static void null_requests(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3], status;
  int flag = 0, index = 0, done = 0, indices[3], count = -1;
  MPI_Wait(&requests[0], &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && count == 0);
  MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  CHECK(flag);
  MPI_Waitall(3, requests, statuses);
  MPI_Testall(3, requests, &flag, statuses);
  CHECK(flag);
  MPI_Waitany(3, requests, &index, &status);
  CHECK_EQ(index, MPI_UNDEFINED);
  MPI_Testany(3, requests, &index, &flag, &status);
  CHECK(flag && index == MPI_UNDEFINED);
  MPI_Waitsome(3, requests, &done, indices, statuses);
  CHECK_EQ(done, MPI_UNDEFINED);
  MPI_Testsome(3, requests, &done, indices, statuses);
  CHECK_EQ(done, MPI_UNDEFINED);
  MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
}

/* Rank 0 posts receives with tags 0..N-1; the last rank sends them in an order of its own. */
enum { N = 16 };

static void post_all(int *values, MPI_Request *requests, int source) {
  for (int i = 0; i < N; ++i) MPI_Irecv(&values[i], 1, MPI_INT, source, i, MPI_COMM_WORLD, &requests[i]);
}

static void send_all(void) {
  for (int i = 0; i < N; ++i) {
    const int tag = (i * 7 + 3) % N, value = 1000 + tag;
    MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

static void wait_any(int source) {
  int values[N], seen[N] = {0};
  MPI_Request requests[N];
  post_all(values, requests, source);
  for (int i = 0; i < N; ++i) {
    int index;
    MPI_Status status;
    MPI_Waitany(N, requests, &index, &status);
    CHECK(index >= 0 && index < N && !seen[index]);
    seen[index] = 1;
    CHECK_EQ(status.MPI_TAG, index);
    CHECK_EQ(values[index], 1000 + index);
    CHECK(requests[index] == MPI_REQUEST_NULL);
  }
}

static void some(int source, int blocking) {
  int values[N], seen[N] = {0}, total = 0;
  MPI_Request requests[N];
  post_all(values, requests, source);
  while (total < N) {
    int done, indices[N];
    MPI_Status statuses[N];
    if (blocking) {
      MPI_Waitsome(N, requests, &done, indices, statuses);
      CHECK(done >= 1);
    } else {
      MPI_Testsome(N, requests, &done, indices, statuses);
    }
    for (int i = 0; i < done; ++i) {
      CHECK(!seen[indices[i]]);
      seen[indices[i]] = 1;
      CHECK_EQ(statuses[i].MPI_TAG, indices[i]);
      CHECK_EQ(values[indices[i]], 1000 + indices[i]);
    }
    total += done;
  }
  CHECK_EQ(total, N);
}

static void test_all(int source) {
  int values[N], flag = 0;
  MPI_Request requests[N];
  MPI_Status statuses[N];
  post_all(values, requests, source);
  while (!flag) MPI_Testall(N, requests, &flag, statuses);
  for (int i = 0; i < N; ++i) {
    CHECK_EQ(statuses[i].MPI_TAG, i);
    CHECK_EQ(values[i], 1000 + i);
    CHECK(requests[i] == MPI_REQUEST_NULL);
  }
}

static void test_any(int source) {
  int values[N];
  MPI_Request requests[N];
  post_all(values, requests, source);
  for (int total = 0; total < N;) {
    int index, flag;
    MPI_Status status;
    MPI_Testany(N, requests, &index, &flag, &status);
    if (!flag) continue;
    CHECK_EQ(status.MPI_TAG, index);
    CHECK_EQ(values[index], 1000 + index);
    ++total;
  }
}

static void several(void) {
  const int source = size_ - 1;
  for (int round = 0; round < 5; ++round) {
    if (rank_ == source && source != 0) send_all();
    if (rank_ == 0 && source != 0) {
      if (round == 0) wait_any(source);
      if (round == 1) some(source, 1);
      if (round == 2) some(source, 0);
      if (round == 3) test_all(source);
      if (round == 4) test_any(source);
    }
  }
}

static void probe(void) {
  if (size_ < 2) return;
  if (rank_ == 0) {
    for (int i = 0; i < 50; ++i) {
      MPI_Status status;
      int count, flag = 0;
      if (i % 2) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      } else {
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &flag, &status);
      }
      MPI_Get_count(&status, MPI_INT, &count);
      CHECK_EQ(status.MPI_TAG, 11);
      int *values = malloc(sizeof *values * (size_t)(count + 1));
      MPI_Recv(values, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
      for (int k = 0; k < count; ++k) CHECK_EQ(values[k], status.MPI_SOURCE * 1000 + k);
      free(values);
    }
  } else {
    for (int i = rank_ - 1; i < 50; i += size_ - 1) {
      const int count = i * i * 40;
      int *values = malloc(sizeof *values * (size_t)(count + 1));
      for (int k = 0; k < count; ++k) values[k] = rank_ * 1000 + k;
      MPI_Send(values, count, MPI_INT, 0, 11, MPI_COMM_WORLD);
      free(values);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int flag = 1;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void cancel(void) {
  int value = 42, cancelled = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, rank_, 99, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled && value == 42);
  /* A message sent afterwards goes to the next receive. */
  int sent = 7;
  MPI_Irecv(&value, 1, MPI_INT, rank_, 99, MPI_COMM_WORLD, &request);
  MPI_Send(&sent, 1, MPI_INT, rank_, 99, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled && value == 7);
}

/* Either the message or the cancel wins; never both, never neither. */
static void cancel_race(void) {
  if (size_ < 2 || rank_ > 1) return;
  for (int round = 0; round < 200; ++round) {
    int value = -1;
    if (rank_ == 0) {
      MPI_Request request;
      MPI_Status status;
      int cancelled;
      MPI_Irecv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
      MPI_Send(&value, 0, MPI_INT, 1, 6, MPI_COMM_WORLD);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &cancelled);
      if (cancelled) {
        CHECK_EQ(value, -1);
        MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      CHECK_EQ(value, round);
    } else {
      MPI_Recv(&value, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&round, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
  }
}

static void free_early(void) {
  enum { MANY = 100 };
  static int out[MANY], in[MANY];
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    out[i] = rank_ * MANY + i;
    MPI_Isend(&out[i], 1, MPI_INT, next, 21, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  }
  for (int i = 0; i < MANY; ++i) {
    MPI_Recv(&in[i], 1, MPI_INT, before, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(in[i], before * MANY + i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Many requests at once: handles and memory are reused. */
static void many(void) {
  enum { MANY = 5000 };
  MPI_Request *requests = malloc(2 * MANY * sizeof *requests);
  int *in = malloc(MANY * sizeof *in), *out = malloc(MANY * sizeof *out);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < MANY; ++i) {
      out[i] = round * MANY + i;
      in[i] = -1;
      MPI_Irecv(&in[i], 1, MPI_INT, (rank_ + 1) % size_, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = MANY - 1; i >= 0; --i) {
      MPI_Isend(&out[i], 1, MPI_INT, (rank_ + size_ - 1) % size_, i, MPI_COMM_WORLD, &requests[MANY + i]);
    }
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; ++i) CHECK_EQ(in[i], round * MANY + i);
  }
  free(requests);
  free(in);
  free(out);
}

/* A call that returns one status leaves its MPI_ERROR alone. One that returns several sets it. */
static void errors_in_statuses(void) {
  const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
  int in = 0, out = rank_;
  MPI_Request requests[2];
  MPI_Status one, two[2];
  one.MPI_ERROR = 77;
  MPI_Isend(&out, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Probe(left, 3, MPI_COMM_WORLD, &one);
  CHECK_EQ(one.MPI_ERROR, 77);
  MPI_Recv(&in, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &one);
  CHECK_EQ(one.MPI_ERROR, 77);
  MPI_Wait(&requests[0], &one);
  CHECK_EQ(one.MPI_ERROR, 77);
  MPI_Wait(&requests[0], &one); /* null */
  CHECK_EQ(one.MPI_ERROR, 77);
  CHECK_EQ(one.MPI_SOURCE, MPI_ANY_SOURCE);
  two[0].MPI_ERROR = two[1].MPI_ERROR = 77;
  MPI_Irecv(&in, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[0]);
  requests[1] = MPI_REQUEST_NULL;
  MPI_Send(&out, 1, MPI_INT, right, 4, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, two);
  CHECK_EQ(two[0].MPI_ERROR, MPI_SUCCESS);
  CHECK_EQ(two[1].MPI_ERROR, MPI_SUCCESS);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  null_requests();
  several();
  probe();
  cancel();
  cancel_race();
  free_early();
  many();
  errors_in_statuses();
  return finish();
}
