/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistent collectives: started many times and in any order, with what the program frees or changes meanwhile.
 *
 * Run at any number of ranks. collectives.c, vectors.c and reductions.c check the results of each function.
 */
#include "check.h"

#if MPI_VERSION >= 4 || defined(CANELE_MPI)

enum { ROUNDS = 20, MOST = 16 };

static void finish_round(MPI_Request *request, int round) {
  int flag = 0, index = -1;
  const MPI_Request kept = *request;
  if (round % 4 == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
  if (round % 4 == 1) MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  if (round % 4 == 2) MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
  while (round % 4 == 3 && !flag) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  CHECK(*request == kept);
}

/* An inactive request is complete, and may be freed without a start. */
static void inactive(void) {
  MPI_Request request;
  MPI_Status status;
  int flag = 0, value = 0;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Wait(&request, &status);
  CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
  MPI_Test(&request, &flag, &status);
  CHECK(flag && request != MPI_REQUEST_NULL);
  MPI_Request_free(&request);
  CHECK(request == MPI_REQUEST_NULL);
  for (int i = 0; i < 200; ++i) {
    MPI_Bcast_init(&value, 1, MPI_INT, i % size_, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Request_free(&request);
  }
}

/* Reads the buffers anew at each start. */
static void rounds(void) {
  int word = 0, sum = 0, data[MOST] = {0};
  MPI_Request requests[3];
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(data, MOST, MPI_INT, size_ - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Allreduce_init(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < MOST; ++i) data[i] = rank_ == size_ - 1 ? round * 100 + i : -1;
    word = round + rank_;
    MPI_Start(&requests[0]);
    finish_round(&requests[0], round);
    MPI_Start(&requests[1]);
    MPI_Start(&requests[2]);
    finish_round(&requests[2], round);
    finish_round(&requests[1], round);
    for (int i = 0; i < MOST; ++i) CHECK_EQ(data[i], round * 100 + i);
    CHECK_EQ(sum, size_ * round + size_ * (size_ - 1) / 2);
  }
  CHECK_EQ(class_of(MPI_Start(&requests[0])), MPI_SUCCESS);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
}

/* Ranks may start them in different orders, and mix them with other collectives and messages. */
static void any_order(void) {
  int in[MOST], out[MOST], received = -1, sent = rank_, value;
  MPI_Request requests[MOST + 2], other;
  for (int i = 0; i < MOST; ++i) {
    MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  }
  MPI_Recv_init(&received, 1, MPI_INT, (rank_ + size_ - 1) % size_, 1, MPI_COMM_WORLD, &requests[MOST]);
  MPI_Send_init(&sent, 1, MPI_INT, (rank_ + 1) % size_, 1, MPI_COMM_WORLD, &requests[MOST + 1]);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < MOST; ++i) in[i] = i + round;
    value = rank_ == 0 ? round : -1;
    if (round % 3 == 0) {
      MPI_Startall(MOST + 2, requests);
    } else {
      for (int i = 0; i < MOST + 2; ++i) MPI_Start(&requests[(i * 5 + rank_ * 7) % (MOST + 2)]);
    }
    MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &other);
    MPI_Waitall(MOST + 2, requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    CHECK_EQ(value, round);
    CHECK_EQ(received, (rank_ + size_ - 1) % size_);
    for (int i = 0; i < MOST; ++i) CHECK_EQ(out[i], size_ * (i + round));
  }
  for (int i = 0; i < MOST + 2; ++i) MPI_Request_free(&requests[i]);
}

static void keep_right(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)count, (void)type;
}

/* The program frees the datatype, the operator and the communicator, and overwrites arrays. */
static void freed_meanwhile(void) {
  int *counts = malloc((size_t)size_ * sizeof *counts), *places = malloc((size_t)size_ * sizeof *places);
  int *all = malloc((size_t)size_ * 4 * sizeof *all), mine[4], result[4], spread[4];
  MPI_Comm comm;
  MPI_Datatype spaced;
  MPI_Op op;
  MPI_Request requests[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(2, 1, 2, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Op_create(keep_right, 0, &op);
  for (int r = 0; r < size_; ++r) {
    counts[r] = 2;
    places[r] = 4 * (size_ - 1 - r);
  }
  MPI_Allgatherv_init(mine, 1, spaced, all, counts, places, MPI_INT, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Allreduce_init(mine, result, 1, spaced, op, comm, MPI_INFO_NULL, &requests[1]);
  MPI_Bcast_init(spread, 1, spaced, 0, comm, MPI_INFO_NULL, &requests[2]);
  MPI_Type_free(&spaced);
  MPI_Op_free(&op);
  MPI_Comm_free(&comm);
  for (int r = 0; r < size_; ++r) counts[r] = places[r] = -1;
  free(counts);
  free(places);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 4; ++i) {
      mine[i] = rank_ * 100 + round * 10 + i;
      result[i] = -1;
      spread[i] = rank_ == 0 ? round * 10 + i : -1;
    }
    for (int i = 0; i < 4 * size_; ++i) all[i] = -1;
    MPI_Startall(3, requests);
    for (int i = 0; i < 3; ++i) finish_round(&requests[i], round + i);
    for (int r = 0; r < size_; ++r) {
      const int *part = all + 4 * (size_ - 1 - r);
      CHECK(part[0] == r * 100 + round * 10 && part[1] == r * 100 + round * 10 + 2 && part[2] == -1 && part[3] == -1);
    }
    CHECK(result[0] == (size_ - 1) * 100 + round * 10 && result[1] == -1);
    CHECK(result[2] == (size_ - 1) * 100 + round * 10 + 2 && result[3] == -1);
    CHECK(spread[0] == round * 10 && spread[2] == round * 10 + 2);
    CHECK(rank_ == 0 || (spread[1] == -1 && spread[3] == -1));
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  free(all);
}

/* MPI_Request_get_status delivers results, and the wait that follows does not deliver them again. */
static void looked_at(void) {
  int in[3] = {1, 2, 3}, out[3], flag;
  MPI_Datatype spaced;
  MPI_Request request;
  MPI_Op op;
  MPI_Type_vector(2, 1, 2, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Op_create(keep_right, 0, &op);
  MPI_Allreduce_init(in, out, 1, spaced, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 3; ++round) {
    in[0] = round;
    memset(out, -1, sizeof out);
    MPI_Start(&request);
    for (flag = 0; !flag;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    CHECK(out[0] == round && out[1] == -1 && out[2] == 3);
    out[0] = 77;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(out[0], 77);
  }
  MPI_Request_free(&request);
  MPI_Op_free(&op);
  MPI_Type_free(&spaced);
}

/* What is wrong is told when the request is made. */
static void errors(void) {
  int value = 0, sum = 0;
  MPI_Comm comm;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Bcast_init(&value, 1, MPI_INT, 1, comm, MPI_INFO_NULL, &request)), MPI_ERR_ROOT);
  CHECK_EQ(class_of(MPI_Bcast_init(&value, -1, MPI_INT, 0, comm, MPI_INFO_NULL, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Bcast_init(&value, 1, MPI_DATATYPE_NULL, 0, comm, MPI_INFO_NULL, &request)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_OP_NULL, comm, MPI_INFO_NULL, &request)),
           MPI_ERR_OP);
  CHECK_EQ(class_of(MPI_Allreduce_init(&value, &value, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request)),
           MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Neighbor_alltoall_init(&value, 1, MPI_INT, &sum, 1, MPI_INT, comm, MPI_INFO_NULL, &request)),
           MPI_ERR_TOPOLOGY);
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Start(&request)), MPI_ERR_REQUEST);
  CHECK_EQ(class_of(MPI_Cancel(&request)), MPI_ERR_REQUEST);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

/* A rank whose call has failed still matches the others afterwards. */
static void one_rank_fails(void) {
  int value = rank_, sum = 0, copied = 0;
  MPI_Comm comm, copy;
  MPI_Request request = MPI_REQUEST_NULL, duplication;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int code = MPI_Bcast_init(&value, rank_ == 0 ? -1 : 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
  CHECK_EQ(class_of(code), rank_ == 0 ? MPI_ERR_COUNT : MPI_SUCCESS);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  MPI_Comm_idup(comm, &copy, &duplication);
  MPI_Wait(&duplication, MPI_STATUS_IGNORE);
  MPI_Start(&request);
  MPI_Allreduce(&value, &copied, 1, MPI_INT, MPI_SUM, copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size_ * (size_ - 1) / 2 && copied == sum);
  MPI_Request_free(&request);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
}

#ifdef CANELE_MPI /* other MPIs may wait for ever */
static int outcome_of(int code, MPI_Request *request) {
  if (code != MPI_SUCCESS) return code;
  code = MPI_Start(request);
  if (code == MPI_SUCCESS) code = MPI_Wait(request, MPI_STATUS_IGNORE);
  MPI_Request_free(request);
  return code;
}

/* The arguments of a rank contradict each other. Starts of the others do not wait for it. */
static void one_rank_contradicts_itself(void) {
  int in[128] = {0}, out[128], one = 1, sum = 0;
  const int odd = rank_ == 0, periodic = 1;
  MPI_Comm comm, ring;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int code = MPI_Alltoall_init(in, odd ? 2 : 1, MPI_INT, out, 1, MPI_INT, comm, MPI_INFO_NULL, &request);
  if (odd) CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
  CHECK(outcome_of(code, &request) != MPI_SUCCESS);
  code = MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  CHECK_EQ(outcome_of(code, &request), MPI_SUCCESS);
  CHECK_EQ(sum, size_);
  /* Also if it is its own neighbour. */
  MPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  code = MPI_Neighbor_alltoall_init(in, 2, MPI_INT, out, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
  CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
  MPI_Comm_free(&ring);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, size_);
  MPI_Comm_free(&comm);
}
#endif

/* Each of the functions for neighbours, in a ring, with data that has gaps on one side. */
static void neighbors(void) {
  enum { FORMS = 10 };
  const int dims[1] = {size_}, periodic[1] = {1}, counts[2] = {1, 1}, places[2] = {0, 1};
  const MPI_Count large[2] = {1, 1};
  const MPI_Aint bytes[2] = {0, 2 * sizeof(int)}, wide[2] = {0, 1}, ends[2] = {0, sizeof(int)};
  const int down = (rank_ + size_ - 1) % size_, up = (rank_ + 1) % size_;
  int out[4], in[4];
  MPI_Comm ring;
  MPI_Datatype spaced, types[2];
  MPI_Request all[FORMS];
  const MPI_Info info = MPI_INFO_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periodic, 0, &ring);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  types[0] = types[1] = spaced;
  const MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  MPI_Neighbor_allgather_init(out, 1, spaced, in, 1, MPI_INT, ring, info, &all[0]);
  MPI_Neighbor_allgather_init_c(out, 1, spaced, in, 1, MPI_INT, ring, info, &all[1]);
  MPI_Neighbor_allgatherv_init(out, 1, spaced, in, counts, places, MPI_INT, ring, info, &all[2]);
  MPI_Neighbor_allgatherv_init_c(out, 1, spaced, in, large, wide, MPI_INT, ring, info, &all[3]);
  MPI_Neighbor_alltoall_init(out, 1, spaced, in, 1, MPI_INT, ring, info, &all[4]);
  MPI_Neighbor_alltoall_init_c(out, 1, spaced, in, 1, MPI_INT, ring, info, &all[5]);
  MPI_Neighbor_alltoallv_init(out, counts, places, spaced, in, counts, places, MPI_INT, ring, info, &all[6]);
  MPI_Neighbor_alltoallv_init_c(out, large, wide, spaced, in, large, wide, MPI_INT, ring, info, &all[7]);
  MPI_Neighbor_alltoallw_init(out, counts, bytes, types, in, counts, ends, ints, ring, info, &all[8]);
  MPI_Neighbor_alltoallw_init_c(out, large, bytes, types, in, large, ends, ints, ring, info, &all[9]);
  MPI_Type_free(&spaced);
  MPI_Comm_free(&ring);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int form = 0; form < FORMS; ++form) {
      for (int i = 0; i < 4; ++i) {
        out[i] = rank_ * 100 + round * 10 + i;
        in[i] = -1;
      }
      MPI_Start(&all[form]);
      finish_round(&all[form], round);
      /* Downwards goes block 0, upwards block 1. */
      CHECK_EQ(in[0], down * 100 + round * 10 + (form < 4 ? 0 : 2));
      CHECK_EQ(in[1], up * 100 + round * 10);
      CHECK(in[2] == -1 && in[3] == -1);
    }
  }
  for (int form = 0; form < FORMS; ++form) MPI_Request_free(&all[form]);
}

/* A program that says that its starts are in one order. */
static void strict_order(void) {
  int value = rank_, sum = 0;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request requests[2];
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_strict_persistent_collective_ordering", "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[0]);
  MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < ROUNDS; ++round) {
    sum = -1;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(sum, size_ * (size_ - 1) / 2);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Comm_free(&comm);
}

/* Never freed: MPI_Finalize ends nevertheless. */
static void left_over(void) {
  MPI_Request request;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  inactive();
  rounds();
  any_order();
  freed_meanwhile();
  looked_at();
  errors();
  one_rank_fails();
#ifdef CANELE_MPI
  one_rank_contradicts_itself();
#endif
  neighbors();
  strict_order();
  left_over();
  return finish();
}

#else
int main(void) { return 0; }
#endif
