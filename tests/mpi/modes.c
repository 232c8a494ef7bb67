/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other ways to send and receive: ready and buffered sends, exchanges in one request, matched probes.
 *
 * Run at any number of ranks. Each rank sends to the next one and receives from the one before.
 */
#include "check.h"

enum { LENGTH = 100000, MESSAGES = 40 };

static int next_, before_;

static void check_received(const MPI_Status *status, int tag, int length) {
  int count = -1;
  MPI_Get_count(status, MPI_CHAR, &count);
  CHECK(status->MPI_SOURCE == before_ && status->MPI_TAG == tag);
  CHECK_EQ(count, length);
}

static void ready(void) {
  int in[2] = {-1, -1}, out[2] = {rank_, rank_ + 100};
  MPI_Request receives[2], send;
  for (int i = 0; i < 2; ++i) MPI_Irecv(&in[i], 1, MPI_INT, before_, i, MPI_COMM_WORLD, &receives[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Irsend(&out[0], 1, MPI_INT, next_, 0, MPI_COMM_WORLD, &send);
  MPI_Rsend(&out[1], 1, MPI_INT, next_, 1, MPI_COMM_WORLD);
  MPI_Rsend(&out[1], 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Waitall(2, receives, MPI_STATUSES_IGNORE);
  CHECK(in[0] == before_ && in[1] == before_ + 100);
}

static void replace(int length) {
  char *data = malloc((size_t)length);
  MPI_Status status;
  fill(data, (size_t)length, rank_);
  MPI_Sendrecv_replace(data, length, MPI_CHAR, next_, 5, before_, 5, MPI_COMM_WORLD, &status);
  check_received(&status, 5, length);
  CHECK(matches(data, (size_t)length, before_));
  MPI_Sendrecv_replace(data, length, MPI_CHAR, rank_, 6, rank_, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == rank_ && status.MPI_TAG == 6 && matches(data, (size_t)length, before_));
  MPI_Sendrecv_replace(data, length, MPI_CHAR, MPI_PROC_NULL, 6, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  free(data);
}

static void replace_with_gaps(void) {
  int data[6];
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 6; ++i) data[i] = rank_ * 10 + i;
  MPI_Sendrecv_replace(data, 1, type, next_, 5, before_, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
  for (int i = 0; i < 6; ++i) CHECK_EQ(data[i], (i % 2 == 0 ? before_ : rank_) * 10 + i);
}

#ifdef CANELE_MPI
static void exchange(int length) {
  char *out = malloc((size_t)length), *in = malloc((size_t)length);
  MPI_Request requests[2];
  MPI_Status status;
  int flag = 0;
  fill(out, (size_t)length, rank_);
  MPI_Isendrecv(out, length, MPI_CHAR, next_, 1, in, length, MPI_CHAR, before_, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], &status);
  CHECK(requests[0] == MPI_REQUEST_NULL && matches(in, (size_t)length, before_));
  check_received(&status, 1, length);
  MPI_Isendrecv_replace(out, length, MPI_CHAR, next_, 2, before_, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isendrecv(in, 1, MPI_CHAR, MPI_PROC_NULL, 1, in, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[1], &status);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  CHECK(matches(out, (size_t)length, before_));
  free(out);
  free(in);
}
#endif

static void matched(int blocking, int length) {
  char *out = malloc((size_t)length), *in = malloc((size_t)length);
  MPI_Request send, receive;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0;
  fill(out, (size_t)length, rank_);
  MPI_Isend(out, length, MPI_CHAR, next_, 8, MPI_COMM_WORLD, &send);
  if (blocking) {
    MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &message, &status);
  } else {
    while (!flag) MPI_Improbe(before_, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
  }
  CHECK(message != MPI_MESSAGE_NULL);
  check_received(&status, 8, length);
  MPI_Iprobe(before_, 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag); /* nothing else can match: no rank goes on before all have looked */
  MPI_Barrier(MPI_COMM_WORLD);
  const MPI_Fint number = MPI_Message_c2f(message);
  CHECK(MPI_Message_f2c(number) == message);
  memset(&status, 0, sizeof status);
  if (blocking) {
    MPI_Mrecv(in, length, MPI_CHAR, &message, &status);
  } else {
    MPI_Imrecv(in, length, MPI_CHAR, &message, &receive);
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Wait(&receive, &status);
  }
  CHECK(message == MPI_MESSAGE_NULL);
  check_received(&status, 8, length);
  CHECK(matches(in, (size_t)length, before_));
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  free(out);
  free(in);
}

static void never_matched(void) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Request request;
  MPI_Status status;
  int flag = 0, value = 3;
  MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK(flag && message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
  CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL && value == 3);
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
  MPI_Wait(&request, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && message == MPI_MESSAGE_NULL);
  MPI_Improbe(before_, 77, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK(!flag && message == MPI_MESSAGE_NULL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Mrecv(&value, 1, MPI_INT, &message, &status)), MPI_ERR_REQUEST);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void receive_all(int length, int first) {
  char *in = malloc((size_t)length);
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Recv(in, length, MPI_CHAR, before_, 20 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(matches(in, (size_t)length, first + before_ + i));
  }
  free(in);
}

/* All sends end before any rank receives. The data may change at once. */
static void buffered(int length, int how) {
  const int size = MESSAGES * (length + MPI_BSEND_OVERHEAD);
  char *memory = malloc((size_t)size), *out = malloc((size_t)length);
  void *detached = NULL;
  int bytes = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Buffer_attach(memory, size);
  if (how == 2) MPI_Bsend_init(out, length, MPI_CHAR, next_, 20, MPI_COMM_WORLD, &request);
  for (int i = 0; i < MESSAGES; ++i) {
    fill(out, (size_t)length, rank_ + i);
    if (how == 0 || (how == 2 && i > 0)) MPI_Bsend(out, length, MPI_CHAR, next_, 20 + i, MPI_COMM_WORLD);
    if (how == 1) MPI_Ibsend(out, length, MPI_CHAR, next_, 20 + i, MPI_COMM_WORLD, &request);
    if (how == 2 && i == 0) MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (how == 2) MPI_Request_free(&request);
  memset(out, 0, (size_t)length);
  MPI_Barrier(MPI_COMM_WORLD);
  receive_all(length, 0);
  MPI_Buffer_detach(&detached, &bytes);
  CHECK(detached == (void *)memory && bytes == size);
  free(memory);
  free(out);
}

static void buffer_too_small(void) {
  static char memory[2 * MPI_BSEND_OVERHEAD + 64], data[sizeof memory + 1];
  void *detached = NULL;
  int bytes = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Bsend(data, 1, MPI_CHAR, rank_, 9, MPI_COMM_WORLD)), MPI_ERR_BUFFER);
  MPI_Buffer_attach(memory, sizeof memory);
  CHECK_EQ(class_of(MPI_Buffer_attach(memory, sizeof memory)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Bsend(data, sizeof data, MPI_CHAR, rank_, 9, MPI_COMM_WORLD)), MPI_ERR_BUFFER);
  for (int i = 0; i < MESSAGES; ++i) { /* the room of those that were sent is used again */
    CHECK_EQ(MPI_Bsend(data, 64, MPI_CHAR, rank_, 9, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Recv(data, 64, MPI_CHAR, rank_, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef CANELE_MPI
    MPI_Buffer_flush();
#endif
  }
  MPI_Buffer_detach(&detached, &bytes);
  CHECK(detached == (void *)memory);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

#ifdef CANELE_MPI
static void automatic(int length) {
  char *out = malloc((size_t)length);
  void *detached = NULL;
  int bytes = 1;
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  for (int i = 0; i < MESSAGES; ++i) {
    fill(out, (size_t)length, rank_ + i);
    MPI_Bsend(out, length, MPI_CHAR, next_, 20 + i, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  receive_all(length, 0);
  MPI_Buffer_flush();
  MPI_Buffer_detach(&detached, &bytes);
  CHECK(detached == MPI_BUFFER_AUTOMATIC && bytes == 0);
  free(out);
}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  next_ = (rank_ + 1) % size_;
  before_ = (rank_ + size_ - 1) % size_;
  ready();
  replace_with_gaps();
  never_matched();
  buffer_too_small();
  for (int form = 0; form < 2; ++form) {
    const int length = form == 0 ? 1 : LENGTH;
    replace(length);
    matched(0, length);
    matched(1, length);
    for (int how = 0; how < 3; ++how) buffered(length, how);
#ifdef CANELE_MPI
    exchange(length);
    automatic(length);
#endif
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return finish();
}
