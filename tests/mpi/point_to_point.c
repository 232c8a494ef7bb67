/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocking and non-blocking messages: every pair of ranks (self included), sizes on both sides of every protocol
 * change, wildcards, order, synchronous sends, exchange, MPI_PROC_NULL.
 */
#include "check.h"

enum { LARGEST = 3 << 20 };
static const int sizes[] = {0, 1, 8, 47, 48, 49, 100, 1000, 4096, 16000, 70000, 300000, LARGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Every rank sends to every rank, non-blocking, all sizes at once. */
static void all_pairs(void) {
  const int messages = size_ * SIZES;
  MPI_Request *requests = malloc(2 * sizeof *requests * (size_t)messages);
  MPI_Status *statuses = malloc(2 * sizeof *statuses * (size_t)messages);
  char **in = malloc(sizeof *in * (size_t)messages);
  char **out = malloc(sizeof *out * (size_t)messages);
  for (int peer = 0; peer < size_; ++peer) {
    for (int i = 0; i < SIZES; ++i) {
      const int at = peer * SIZES + i;
      in[at] = malloc((size_t)sizes[i] + 1);
      in[at][sizes[i]] = 77;
      out[at] = malloc((size_t)sizes[i] + 1);
      fill(out[at], (size_t)sizes[i], rank_ * 100 + peer + i);
      MPI_Irecv(in[at], sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[at]);
    }
  }
  for (int i = 0; i < SIZES; ++i) {
    for (int step = 0; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      const int at = peer * SIZES + i;
      MPI_Isend(out[at], sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[messages + at]);
    }
  }
  MPI_Waitall(2 * messages, requests, statuses);
  for (int peer = 0; peer < size_; ++peer) {
    for (int i = 0; i < SIZES; ++i) {
      const int at = peer * SIZES + i;
      int count;
      MPI_Get_count(&statuses[at], MPI_BYTE, &count);
      CHECK_EQ(count, sizes[i]);
      CHECK_EQ(statuses[at].MPI_SOURCE, peer);
      CHECK_EQ(statuses[at].MPI_TAG, i);
      CHECK(matches(in[at], (size_t)sizes[i], peer * 100 + rank_ + i));
      CHECK_EQ(in[at][sizes[i]], 77);
      CHECK(requests[at] == MPI_REQUEST_NULL);
      free(in[at]);
      free(out[at]);
    }
  }
  free(requests);
  free(statuses);
  free(in);
  free(out);
}

/* A ring of blocking calls, eager and rendezvous, unexpected and expected. */
static void ring(void) {
  char *buffer = malloc(LARGEST);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < SIZES; ++i) {
    for (int synchronous = 0; synchronous < 2; ++synchronous) {
      MPI_Status status;
      if (rank_ != 0) MPI_Recv(buffer, LARGEST, MPI_CHAR, before, 7, MPI_COMM_WORLD, &status);
      if (rank_ == 0) fill(buffer, (size_t)sizes[i], i);
      if (size_ > 1) {
        if (synchronous) {
          MPI_Ssend(buffer, sizes[i], MPI_CHAR, next, 7, MPI_COMM_WORLD);
        } else {
          MPI_Send(buffer, sizes[i], MPI_CHAR, next, 7, MPI_COMM_WORLD);
        }
        if (rank_ == 0) MPI_Recv(buffer, LARGEST, MPI_CHAR, before, 7, MPI_COMM_WORLD, &status);
        int count;
        MPI_Get_count(&status, MPI_CHAR, &count);
        CHECK_EQ(count, sizes[i]);
      }
      CHECK(matches(buffer, (size_t)sizes[i], i));
    }
  }
  free(buffer);
}

/* Messages of one sender match in the order they were sent, whatever tags the receives name. */
static void order(void) {
  enum { MANY = 200 };
  if (rank_ == 0) {
    for (int peer = 1; peer < size_; ++peer) {
      for (int i = 0; i < MANY; ++i) {
        int last = -1;
        MPI_Status status;
        if (i % 3 == 0) {
          MPI_Recv(&last, 1, MPI_INT, peer, i % 5, MPI_COMM_WORLD, &status);
        } else {
          MPI_Recv(&last, 1, MPI_INT, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        }
        CHECK_EQ(last, i);
        CHECK_EQ(status.MPI_TAG, i % 5);
      }
    }
  } else {
    for (int i = 0; i < MANY; ++i) MPI_Send(&i, 1, MPI_INT, 0, i % 5, MPI_COMM_WORLD);
  }
}

/* Order also holds between a large message and a small one behind it. */
static void order_of_sizes(void) {
  char *large = malloc(LARGEST);
  if (rank_ == 0 && size_ > 1) {
    MPI_Request requests[2];
    char small;
    memset(large, 1, LARGEST);
    small = 2;
    MPI_Isend(large, LARGEST, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&small, 1, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (rank_ == 1) {
    MPI_Status status;
    int count;
    MPI_Recv(large, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, LARGEST);
    CHECK(large[0] == 1 && large[LARGEST - 1] == 1);
    MPI_Recv(large, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(large[0], 2);
  }
  free(large);
}

static void any_source(void) {
  enum { EACH = 20 };
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_ == 0) {
    int *seen = calloc((size_t)size_, sizeof *seen);
    for (int i = 0; i < EACH * (size_ - 1); ++i) {
      int value[2];
      MPI_Status status;
      MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status);
      CHECK_EQ(status.MPI_SOURCE, value[0]);
      CHECK_EQ(value[1], seen[value[0]]++);
    }
    for (int peer = 1; peer < size_; ++peer) CHECK_EQ(seen[peer], EACH);
    free(seen);
  } else {
    for (int i = 0; i < EACH; ++i) {
      const int value[2] = {rank_, i};
      MPI_Send(value, 2, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
  }
}

/* A synchronous send is not complete before a receive has matched it. */
static void synchronous(void) {
  if (size_ < 2) return;
  if (rank_ == 0) {
    int value = 5, flag = 1, token = 0;
    MPI_Request request;
    MPI_Issend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 1000; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    MPI_Send(&token, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank_ == 1) {
    int value = 0, token;
    MPI_Recv(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(value, 5);
  }
}

static void exchange(void) {
  char *in = malloc(LARGEST), *out = malloc(LARGEST);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < SIZES; ++i) {
    MPI_Status status;
    int count;
    fill(out, (size_t)sizes[i], rank_ + i);
    MPI_Sendrecv(out, sizes[i], MPI_BYTE, next, i, in, LARGEST, MPI_BYTE, before, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, sizes[i]);
    CHECK_EQ(status.MPI_SOURCE, before);
    CHECK_EQ(status.MPI_TAG, i);
    CHECK(matches(in, (size_t)sizes[i], before + i));
  }
  free(in);
  free(out);
}

static void proc_null(void) {
  int value = 3, count = -1;
  MPI_Status status;
  MPI_Request request;
  MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0 && value == 3);
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && request == MPI_REQUEST_NULL);
  MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, &value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  all_pairs();
  ring();
  order();
  order_of_sizes();
  any_source();
  synchronous();
  exchange();
  proc_null();
  return finish();
}
