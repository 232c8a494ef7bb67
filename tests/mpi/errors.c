/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With MPI_ERRORS_RETURN, wrong arguments give error codes, a message too long is reported and overwrites nothing, and
 * everything works afterwards.
 */
#include "check.h"

static void arguments(void) {
  int value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQ(class_of(MPI_Send(&value, 1, MPI_INT, size_, 0, MPI_COMM_WORLD)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD)), MPI_ERR_TAG);
  for (int tag = -4; tag < 0; ++tag) {
    if (tag == MPI_ANY_TAG) continue;
    CHECK_EQ(class_of(MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_ERR_TAG);
    CHECK_EQ(class_of(MPI_Irecv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &request)), MPI_ERR_TAG);
  }
  CHECK_EQ(class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Irecv(&value, 1, MPI_INT, size_ + 3, 0, MPI_COMM_WORLD, &request)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Bcast(&value, 1, MPI_INT, size_, MPI_COMM_WORLD)), MPI_ERR_ROOT);
  CHECK_EQ(class_of(MPI_Reduce(&value, &value + 1, 1, MPI_DOUBLE, MPI_BAND, 0, MPI_COMM_WORLD)), MPI_ERR_OP);
  MPI_Datatype type;
  CHECK_EQ(class_of(MPI_Type_contiguous(-1, MPI_INT, &type)), MPI_ERR_COUNT);
  int length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
  CHECK(length > 0 && (size_t)length == strlen(text) && strstr(text, "MPI_ERR_TRUNCATE") != NULL);
}

/* Handles that name no request, or none any more. */
static void requests(void) {
#ifdef CANELE_MPI /* other MPIs may do anything */
  for (int posted_first = 0; posted_first < 2; ++posted_first) {
    int out[2] = {5, 6}, in[2] = {0, 0}, flag = 0, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request receives[2], stale, twice[2];
    MPI_Status statuses[2];
    if (!posted_first) MPI_Send(&out[0], 1, MPI_INT, rank_, 3, MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) MPI_Irecv(&in[i], 1, MPI_INT, rank_, 3 + i, MPI_COMM_WORLD, &receives[i]);
    if (posted_first) MPI_Send(&out[0], 1, MPI_INT, rank_, 3, MPI_COMM_WORLD);
    stale = receives[0];
    CHECK_EQ(MPI_Wait(&receives[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Wait(&stale, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    MPI_Error_string(MPI_ERR_REQUEST, text, &length);
    CHECK(strstr(text, "not a request, or was completed before") != NULL);
    CHECK_EQ(class_of(MPI_Test(&stale, &flag, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Cancel(&stale)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Request_free(&stale)), MPI_ERR_REQUEST);
    MPI_Request other = (MPI_Request)MPI_INT;
    CHECK_EQ(class_of(MPI_Wait(&other, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    MPI_Send(&out[1], 1, MPI_INT, rank_, 4, MPI_COMM_WORLD);
    twice[0] = twice[1] = receives[1];
    if (posted_first) {
      CHECK_EQ(class_of(MPI_Waitall(2, twice, MPI_STATUSES_IGNORE)), MPI_ERR_REQUEST);
    } else {
      CHECK_EQ(class_of(MPI_Waitall(2, twice, statuses)), MPI_ERR_IN_STATUS);
      CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
      CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_REQUEST);
    }
    CHECK(twice[0] == MPI_REQUEST_NULL);
    CHECK(in[0] == 5 && in[1] == 6);
  }
#endif
}

static void truncation(int sent, int room) {
  if (size_ < 2 || rank_ > 1) return;
  char *buffer = malloc((size_t)sent);
  if (rank_ == 0) {
    fill(buffer, (size_t)sent, 3);
    MPI_Send(buffer, sent, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Send(buffer, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Send(buffer, sent, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  } else {
    MPI_Status status, statuses[2];
    memset(buffer, 99, (size_t)sent);
    CHECK_EQ(class_of(MPI_Recv(buffer, room, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status)), MPI_ERR_TRUNCATE);
    for (int i = room; i < sent; ++i) CHECK_EQ(buffer[i], 99);
    char one = 0;
    MPI_Request requests[2];
    MPI_Irecv(&one, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(buffer, room, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
#ifdef CANELE_MPI
    CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
#else /* Open MPI 4.1 never comes back from such a Waitall */
    CHECK_EQ(MPI_Wait(&requests[0], &statuses[0]), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Wait(&requests[1], &statuses[1])), MPI_ERR_TRUNCATE);
#endif
    CHECK_EQ((unsigned char)one, pattern(0, 3));
    for (int i = room; i < sent; ++i) CHECK_EQ(buffer[i], 99);
  }
  free(buffer);
}

/* Wrong arguments of collectives, on all ranks alike; nothing is sent, and the next collective works. The checks for
 * our MPI only are errors by MPI's rules that Open MPI does not detect, or names otherwise. */
static void collectives(void) {
  int one = 1, many[64] = {0}, counts[64], places[64];
  for (int i = 0; i < 64; ++i) counts[i] = places[i] = i < size_ ? 1 : 0;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  for (int root = -1; root <= size_; root += size_ + 1) {
    CHECK_EQ(class_of(MPI_Bcast(&one, 1, MPI_INT, root, comm)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Ibcast(&one, 1, MPI_INT, root, comm, &request)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Reduce(&one, many, 1, MPI_INT, MPI_SUM, root, comm)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Gather(&one, 1, MPI_INT, many, 1, MPI_INT, root, comm)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Iscatterv(many, counts, places, MPI_INT, &one, 1, MPI_INT, root, comm, &request)),
             MPI_ERR_ROOT);
  }
  CHECK_EQ(class_of(MPI_Ibcast(&one, -1, MPI_INT, 0, comm, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Allreduce(&one, many, -1, MPI_INT, MPI_SUM, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Iscan(&one, many, -2, MPI_INT, MPI_SUM, comm, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Allgather(&one, 1, MPI_INT, many, -1, MPI_INT, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Alltoall(many, 1, MPI_DATATYPE_NULL, many + 32, 1, MPI_INT, comm)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Iallreduce(&one, many, 1, MPI_INT, MPI_OP_NULL, comm, &request)), MPI_ERR_OP);
  CHECK_EQ(class_of(MPI_Exscan(&one, many, 1, MPI_DOUBLE, MPI_BXOR, comm)), MPI_ERR_OP);
  CHECK_EQ(class_of(MPI_Ibarrier(MPI_COMM_NULL, &request)), MPI_ERR_COMM);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allgather(many, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allreduce(many, many, 1, MPI_INT, MPI_SUM, comm)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allgather(many, 2, MPI_INT, many + 8, 1, MPI_INT, comm)), MPI_ERR_TRUNCATE);
  counts[size_ - 1] = -1;
  CHECK_EQ(class_of(MPI_Ialltoallv(many, counts, places, MPI_INT, many, counts, places, MPI_INT, comm, &request)),
           MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Reduce_scatter(many, &one, counts, MPI_INT, MPI_SUM, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Allgatherv(&one, 1, MPI_INT, many, NULL, places, MPI_INT, comm)), MPI_ERR_ARG);
  const int others = (rank_ + 1) % size_;
  if (size_ > 1) {
    CHECK_EQ(class_of(MPI_Reduce(MPI_IN_PLACE, many, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF)), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Reduce(MPI_IN_PLACE, many, 1, MPI_INT, MPI_SUM, others, comm)), MPI_ERR_BUFFER);
    CHECK_EQ(class_of(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, many, 1, MPI_INT, others, comm)), MPI_ERR_BUFFER);
    CHECK_EQ(class_of(MPI_Scatter(many, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, others, comm)), MPI_ERR_BUFFER);
  }
  /* A collective can neither be cancelled nor freed early. */
  CHECK_EQ(MPI_Ibarrier(comm, &request), MPI_SUCCESS);
  CHECK_EQ(class_of(MPI_Cancel(&request)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Request_free(&request)), MPI_ERR_REQUEST);
  CHECK(request != MPI_REQUEST_NULL);
  CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
#endif
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQ(MPI_Allgather(&rank_, 1, MPI_INT, many, 1, MPI_INT, comm), MPI_SUCCESS);
  for (int i = 0; i < size_; ++i) CHECK_EQ(many[i], i);
}

#ifdef CANELE_MPI /* other MPIs may wait for ever */
static void next_collective_succeeds(MPI_Comm comm) {
  int one = 1, sum = 0;
  CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, size_);
}

static void fails(int code) { CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE); }
/* A rank that needs nothing of those that disagree may succeed. */
static void may_fail(int code) { CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_TRUNCATE); }

/* Ranks disagree on lengths in one collective. It fails, on the ranks that can know, and the next one succeeds. */
static void disagreements(MPI_Comm comm) {
  int in[128] = {0}, out[128];
  const int odd = rank_ == 0, count = odd ? 2 : 1;
  MPI_Request request;
  (odd ? may_fail : fails)(MPI_Bcast(in, count, MPI_INT, 0, comm));
  next_collective_succeeds(comm);
  (odd ? fails : may_fail)(MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, 0, comm));
  next_collective_succeeds(comm);
  may_fail(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
  next_collective_succeeds(comm);
  may_fail(MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm));
  next_collective_succeeds(comm);
  fails(MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm));
  next_collective_succeeds(comm);
  /* The odd rank contradicts itself, and takes no part. */
  (odd ? fails : may_fail)(MPI_Gather(in, 1, MPI_INT, out, count, MPI_INT, 0, comm));
  next_collective_succeeds(comm);
  fails(MPI_Scatter(in, count, MPI_INT, out, 1, MPI_INT, 0, comm));
  next_collective_succeeds(comm);
  fails(MPI_Allgather(in, count, MPI_INT, out, 1, MPI_INT, comm));
  next_collective_succeeds(comm);
  fails(MPI_Alltoall(in, count, MPI_INT, out, 1, MPI_INT, comm));
  next_collective_succeeds(comm);
  const int code = MPI_Ialltoall(in, count, MPI_INT, out, 1, MPI_INT, comm, &request);
  fails(odd ? code : MPI_Wait(&request, MPI_STATUS_IGNORE));
  next_collective_succeeds(comm);
}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  arguments();
  requests();
  collectives();
#ifdef CANELE_MPI
  if (size_ > 1) disagreements(MPI_COMM_WORLD);
#endif
  truncation(100, 10);
  truncation(1000000, 10);
  truncation(1000000, 500000);
  truncation(50, 0);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  int value = 0;
  CHECK(MPI_Send(&value, 1, MPI_INT, -17, 0, copy) != MPI_SUCCESS); /* the handler is inherited */
  MPI_Comm_free(&copy);
  return finish();
}
