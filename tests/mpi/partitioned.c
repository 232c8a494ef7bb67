/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Partitioned messages: all numbers of partitions on both sides, any order of MPI_Pready, many starts, threads.
 *
 * Run at any number of ranks. Each rank sends to the next one and receives from the one before.
 */
#include "check.h"

#if MPI_VERSION >= 4 || defined(CANELE_MPI)

#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 6, THREADS = 4 };

static int next_, before_;

/* Makes all partitions ready, in one of several orders and ways. */
static void make_ready(MPI_Request request, int partitions, int way) {
  if (way == 0) {
    for (int i = 0; i < partitions; ++i) MPI_Pready(i, request);
  } else if (way == 1) {
    for (int i = partitions - 1; i >= 0; --i) MPI_Pready(i, request);
  } else if (way == 2 && partitions > 0) {
    MPI_Pready_range(0, partitions - 1, request);
  } else if (way == 3) {
    const int half = partitions / 2;
    if (half > 0) MPI_Pready_range(partitions - half, partitions - 1, request);
    for (int i = partitions - half - 1; i >= 0; --i) MPI_Pready(i, request);
  } else {
    int *list = malloc((size_t)(partitions + 1) * sizeof *list), n = 0;
    for (int i = 0; i < partitions; i += 2) list[n++] = i;
    for (int i = 1; i < partitions; i += 2) list[n++] = i;
    MPI_Pready_list(n, list, request);
    free(list);
  }
}

static void check_received(const MPI_Status *status, int tag, size_t length) {
  MPI_Count count = -1;
  MPI_Get_count_c(status, MPI_CHAR, &count);
  CHECK(status->MPI_SOURCE == before_ && status->MPI_TAG == tag);
  CHECK_EQ(count, length);
}

/* A ring with `sends` partitions on one side and `receives` on the other. */
static void ring(int sends, int receives, size_t length) {
  char *out = calloc(length + 1, 1), *in = malloc(length + 1);
  MPI_Request requests[2];
  MPI_Psend_init(out, sends, (MPI_Count)length / sends, MPI_CHAR, next_, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[0]);
  MPI_Precv_init(in, receives, (MPI_Count)length / receives, MPI_CHAR, before_, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[1]);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Status statuses[2];
    fill(out, length, round + rank_);
    memset(in, 0, length);
    if (round % 2 == 0) {
      MPI_Startall(2, requests);
    } else {
      MPI_Start(&requests[0]);
      make_ready(requests[0], sends, round % 5);
      MPI_Start(&requests[1]);
    }
    if (round % 2 == 0) make_ready(requests[0], sends, round % 5);
    if (round % 3 == 0) {
      for (int i = receives - 1; i >= 0; --i) {
        const size_t part = length / (size_t)receives;
        for (int flag = 0; !flag;) {
          MPI_Parrived(requests[1], i, &flag);
          if (!flag) sched_yield();
        }
        for (size_t k = 0; k < part; ++k)
          CHECK_EQ((unsigned char)in[(size_t)i * part + k], pattern((size_t)i * part + k, round + before_));
      }
    }
    MPI_Waitall(2, requests, statuses);
    check_received(&statuses[1], 7, length);
    CHECK(matches(in, length, round + before_));
    int flag = 0;
    MPI_Parrived(requests[1], 0, &flag); /* inactive */
    CHECK(flag);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  free(out);
  free(in);
}

static void rings(void) {
  static const int partitions[] = {1, 2, 3, 8, 60};
  for (size_t i = 0; i < sizeof partitions / sizeof *partitions; ++i) {
    for (size_t k = 0; k < sizeof partitions / sizeof *partitions; ++k) {
      ring(partitions[i], partitions[k], 0);
      ring(partitions[i], partitions[k], 120);
      ring(partitions[i], partitions[k], 24000);
      ring(partitions[i], partitions[k], 600000);
    }
  }
  ring(10000, 40, 40000);
  ring(20, 20000, 20000 * 12);
}

/* A partition arrives while others are not ready. Each rank is sender and receiver. */
static void early(void) {
  enum { PARTS = 4, LENGTH = 100000 }; /* a partition is long enough to leave alone */
  char *out = malloc(PARTS * LENGTH), *in = malloc(PARTS * LENGTH);
  int flag = 1;
  MPI_Request requests[2];
  MPI_Psend_init(out, PARTS, LENGTH, MPI_CHAR, next_, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, PARTS, LENGTH, MPI_CHAR, before_, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    fill(out, PARTS * LENGTH, round + rank_);
    MPI_Startall(2, requests);
    for (int i = 0; i < PARTS; ++i) {
      const int part = (i * 3 + round) % PARTS;
      MPI_Barrier(MPI_COMM_WORLD);
      for (int k = i; k < PARTS; ++k) {
        MPI_Parrived(requests[1], (k * 3 + round) % PARTS, &flag);
        CHECK(!flag);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Pready(part, requests[0]);
      for (flag = 0; !flag; sched_yield()) MPI_Parrived(requests[1], part, &flag);
      MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
      CHECK(flag == 0 || i == PARTS - 1);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(matches(in, PARTS * LENGTH, round + before_));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

/* Those of one tag match in the order in which they were made, whatever the order of starts. No other receive gets
 * them. */
static void matching(void) {
  enum { MESSAGES = 5 };
  int out[MESSAGES][2], in[MESSAGES][2], ordinary = -1, value = 1000 + rank_;
  MPI_Request sends[MESSAGES], receives[MESSAGES], other;
  MPI_Irecv(&ordinary, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &other);
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Psend_init(out[i], 2, 1, MPI_INT, next_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]);
    MPI_Precv_init(in[i], 1, 2, MPI_INT, before_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < MESSAGES; ++i) {
      const int k = (i * 2 + rank_ + round) % MESSAGES;
      out[k][0] = rank_ * 100 + k;
      out[k][1] = round;
      MPI_Start(&sends[k]);
      MPI_Pready_range(0, 1, sends[k]);
    }
    for (int i = 0; i < MESSAGES; ++i) MPI_Start(&receives[(i * 3 + round) % MESSAGES]);
    MPI_Waitall(MESSAGES, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; ++i) CHECK(in[i][0] == before_ * 100 + i && in[i][1] == round);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(ordinary, -1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&value, 1, MPI_INT, next_, 3, MPI_COMM_WORLD);
  MPI_Wait(&other, MPI_STATUS_IGNORE);
  CHECK_EQ(ordinary, 1000 + before_);
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Request_free(&sends[i]);
    MPI_Request_free(&receives[i]);
  }
}

/* Elements with gaps on both sides, of different shapes: pieces begin within elements of the receiver. */
static void gaps(void) {
  enum { INTS = 60000 };
  int *out = malloc(2 * INTS * sizeof *out), *in = malloc(3 * INTS * sizeof *in);
  MPI_Datatype spaced, pairs;
  MPI_Request requests[2];
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
  MPI_Type_vector(INTS / 12, 2, 6, MPI_INT, &pairs); /* a sixth of the data */
  MPI_Type_create_resized(pairs, 0, INTS / 2 * sizeof(int), &pairs);
  MPI_Type_commit(&spaced);
  MPI_Type_commit(&pairs);
  MPI_Psend_init(out, 20, INTS / 20, spaced, next_, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, 3, 2, pairs, before_, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Type_free(&spaced);
  MPI_Type_free(&pairs);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 2 * INTS; ++i) out[i] = i % 2 == 0 ? i / 2 + round + rank_ : -1;
    for (int i = 0; i < 3 * INTS; ++i) in[i] = -7;
    MPI_Startall(2, requests);
    make_ready(requests[0], 20, round % 5);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3 * INTS; ++i) CHECK_EQ(in[i], i % 6 < 2 ? i / 6 * 2 + i % 6 + round + before_ : -7);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

struct Worker {
  pthread_t thread;
  MPI_Request request;
  char *data;
  int index, round, receives;
};

enum { PARTS = 64, PART = 1000 };

/* A thread fills every fourth partition, or waits for it. */
static void *work(void *argument) {
  struct Worker *self = argument;
  for (int i = self->index; i < PARTS; i += THREADS) {
    if (self->receives) {
      for (int flag = 0; !flag; sched_yield()) MPI_Parrived(self->request, i, &flag);
      for (int k = 0; k < PART; ++k)
        CHECK_EQ((unsigned char)self->data[i * PART + k], pattern((size_t)(i * PART + k), self->round + before_));
    } else {
      for (int k = 0; k < PART; ++k)
        self->data[i * PART + k] = (char)pattern((size_t)(i * PART + k), self->round + rank_);
      MPI_Pready(i, self->request);
    }
  }
  return NULL;
}

static void threads(void) {
  char *out = calloc(PARTS, PART), *in = malloc(PARTS * PART);
  struct Worker workers[2 * THREADS];
  MPI_Request requests[2];
  MPI_Psend_init(out, PARTS, PART, MPI_CHAR, next_, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, PARTS, PART, MPI_CHAR, before_, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < ROUNDS; ++round) {
    memset(in, 0, PARTS * PART);
    MPI_Startall(2, requests);
    for (int i = 0; i < 2 * THREADS; ++i) {
      const int receives = i / THREADS;
      workers[i] = (struct Worker){0, requests[receives], receives ? in : out, i % THREADS, round, receives};
      CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2 * THREADS; ++i) pthread_join(workers[i].thread, NULL);
    CHECK(matches(in, PARTS * PART, round + before_));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

static void no_process(void) {
  int value[2] = {1, 2}, flag = 0;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Psend_init(value, 2, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(value, 2, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 1, requests[0]);
    MPI_Parrived(requests[1], 1, &flag);
    CHECK(flag);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], &status);
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Parrived(MPI_REQUEST_NULL, 0, &flag);
  CHECK(flag);
}

static void errors(void) {
  char out[8] = "1234567", in[8];
  int flag, list[2] = {0, 4};
  MPI_Comm comm;
  MPI_Status status;
  MPI_Request send, receive, none = MPI_REQUEST_NULL, ordinary;
  const MPI_Info info = MPI_INFO_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Psend_init(out, -1, 1, MPI_CHAR, 0, 0, comm, info, &send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Psend_init(out, 1, -1, MPI_CHAR, 0, 0, comm, info, &send)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Psend_init(out, 0, -1, MPI_CHAR, 0, 0, comm, info, &send)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Psend_init(out, 1, 1, MPI_CHAR, 1, 0, comm, info, &send)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Precv_init(in, 1, 1, MPI_CHAR, MPI_ANY_SOURCE, 0, comm, info, &receive)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Precv_init(in, 1, 1, MPI_CHAR, 0, MPI_ANY_TAG, comm, info, &receive)), MPI_ERR_TAG);
  CHECK_EQ(class_of(MPI_Psend_init(out, 4, (MPI_Count)1 << 62, MPI_CHAR, 0, 0, comm, info, &send)), MPI_ERR_COUNT);
  MPI_Psend_init(out, 4, 2, MPI_CHAR, 0, 0, comm, info, &send);
  MPI_Precv_init(in, 4, 1, MPI_CHAR, 0, 0, comm, info, &receive);
  CHECK_EQ(class_of(MPI_Pready(0, send)), MPI_ERR_REQUEST); /* inactive */
  CHECK_EQ(class_of(MPI_Pready(0, none)), MPI_ERR_REQUEST);
  MPI_Start(&send);
  MPI_Start(&receive);
  CHECK_EQ(class_of(MPI_Pready(-1, send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Pready(4, send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Pready_range(2, 4, send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Pready_range(2, 1, send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Pready_list(2, list, send)), MPI_ERR_ARG); /* partition 0 is ready now */
  CHECK_EQ(class_of(MPI_Pready(0, send)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Pready(0, receive)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Parrived(send, 0, &flag)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Parrived(receive, 4, &flag)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Parrived(receive, -1, &flag)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Cancel(&receive)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Start(&receive)), MPI_ERR_REQUEST);
  MPI_Irecv(in, 1, MPI_CHAR, 0, 0, comm, &ordinary);
  CHECK_EQ(class_of(MPI_Pready(0, ordinary)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Parrived(ordinary, 0, &flag)), MPI_ERR_REQUEST);
  MPI_Send(out, 1, MPI_CHAR, 0, 0, comm);
  MPI_Wait(&ordinary, MPI_STATUS_IGNORE);
  MPI_Pready_range(1, 3, send);
  CHECK_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
  memset(in, 'x', sizeof in);
  CHECK_EQ(class_of(MPI_Wait(&receive, &status)), MPI_ERR_TRUNCATE);
  MPI_Get_count(&status, MPI_CHAR, &flag);
  CHECK_EQ(flag, 4);
  CHECK(in[4] == 'x' && in[7] == 'x');
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* The program frees the communicator, and requests that were never started. */
static void freed(void) {
  int out[2] = {rank_, rank_ + 1}, in[2] = {-1, -1};
  MPI_Comm comm;
  MPI_Request requests[4];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 4; i += 2) {
    MPI_Psend_init(out, 2, 1, MPI_INT, next_, 1, comm, MPI_INFO_NULL, &requests[i]);
    MPI_Precv_init(in, 2, 1, MPI_INT, before_, 1, comm, MPI_INFO_NULL, &requests[i + 1]);
  }
  MPI_Comm_free(&comm);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  for (int round = 0; round < ROUNDS; ++round) {
    in[0] = in[1] = -1;
    MPI_Startall(2, requests + 2);
    MPI_Pready_range(0, 1, requests[2]);
    MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE);
    CHECK(in[0] == before_ && in[1] == before_ + 1);
  }
  MPI_Request_free(&requests[2]);
  MPI_Request_free(&requests[3]);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  next_ = (rank_ + 1) % size_;
  before_ = (rank_ + size_ - 1) % size_;
  rings();
  early();
  matching();
  gaps();
  threads();
  no_process();
  errors();
  freed();
  return finish();
}

#else
int main(void) { return 0; }
#endif
