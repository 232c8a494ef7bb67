/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forms for large counts (MPI_X_c) of messages and collectives. With the argument "huge": counts beyond 31 bits.
 *
 * Run at any number of ranks, "huge" at two. Huge buffers are one piece of memory that is mapped many times.
 */
#include "check.h"

#if MPI_VERSION >= 4 || defined(CANELE_MPI)

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = 1000, PIECE = 1 << 21 };

static int next_, before_;

static void check_count(const MPI_Status *status, MPI_Datatype type, MPI_Count expected) {
  MPI_Count count = -1;
  CHECK_EQ(MPI_Get_count_c(status, type, &count), MPI_SUCCESS);
  CHECK_EQ(count, expected);
}

static void check_message(const MPI_Status *status, int tag, const char *in) {
  CHECK(status->MPI_SOURCE == before_ && status->MPI_TAG == tag);
  check_count(status, MPI_CHAR, LENGTH);
  CHECK(matches(in, LENGTH, tag + before_));
}

static void messages(void) {
  const MPI_Count length = LENGTH;
  char out[LENGTH], in[LENGTH];
  MPI_Request requests[2];
  MPI_Status status;
  for (int form = 0; form < 5; ++form) {
    fill(out, LENGTH, form + rank_);
    MPI_Irecv_c(in, length, MPI_CHAR, before_, form, MPI_COMM_WORLD, &requests[0]);
    if (form == 0) MPI_Send_c(out, length, MPI_CHAR, next_, form, MPI_COMM_WORLD);
    if (form == 1) MPI_Ssend_c(out, length, MPI_CHAR, next_, form, MPI_COMM_WORLD);
    if (form == 2) MPI_Rsend_c(out, length, MPI_CHAR, next_, form, MPI_COMM_WORLD);
    if (form == 3) MPI_Isend_c(out, length, MPI_CHAR, next_, form, MPI_COMM_WORLD, &requests[1]);
    if (form == 4) MPI_Issend_c(out, length, MPI_CHAR, next_, form, MPI_COMM_WORLD, &requests[1]);
    if (form >= 3) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], &status);
    check_message(&status, form, in);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  fill(out, LENGTH, 5 + rank_);
  MPI_Isend_c(out, length, MPI_CHAR, next_, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Recv_c(in, length, MPI_CHAR, before_, 5, MPI_COMM_WORLD, &status);
  check_message(&status, 5, in);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  fill(out, LENGTH, 6 + rank_);
  MPI_Sendrecv_c(out, length, MPI_CHAR, next_, 6, in, length, MPI_CHAR, before_, 6, MPI_COMM_WORLD, &status);
  check_message(&status, 6, in);
  MPI_Sendrecv_replace_c(out, length, MPI_CHAR, next_, 6, before_, 6, MPI_COMM_WORLD, &status);
  CHECK(matches(out, LENGTH, 6 + before_));
}

/* Counts that no memory could hold are errors, and so are negative ones. */
static void errors(void) {
  const MPI_Count most = (MPI_Count)1 << 61, negative = -((MPI_Count)1 << 40);
  long value[2] = {0, 0};
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Send_c(value, most, MPI_LONG, 0, 0, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Recv_c(value, negative, MPI_LONG, 0, 0, comm, MPI_STATUS_IGNORE)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Isend_c(value, negative, MPI_LONG, 0, 0, comm, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Irecv_c(value, most, MPI_LONG, 0, 0, comm, &request)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Bcast_c(value, most, MPI_LONG, 0, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Allreduce_c(value, value + 1, most, MPI_LONG, MPI_SUM, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Reduce_scatter_block_c(value, value + 1, negative, MPI_LONG, MPI_SUM, comm)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Alltoall_c(value, negative, MPI_LONG, value + 1, 1, MPI_LONG, comm)), MPI_ERR_COUNT);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Reduce_local_c(value, value + 1, most, MPI_LONG, MPI_SUM)), MPI_ERR_COUNT);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* Completes a collective; starts it first if it is persistent. */
static void complete(MPI_Request *request, int persistent) {
  if (persistent) MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(request);
}

/* Collectives whose arrays of counts are of MPI_Count: rank r has r + 1 elements, from places[r] on. */
static void vectors(void) {
  MPI_Count *counts = malloc((size_t)size_ * sizeof *counts);
  MPI_Aint *places = malloc((size_t)size_ * sizeof *places);
  int *all = malloc((size_t)(size_ * (size_ + 3)) * sizeof *all), *mine = malloc((size_t)(size_ + 1) * sizeof *mine);
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info info = MPI_INFO_NULL;
  int end = 0;
  MPI_Request request;
  for (int r = 0; r < size_; end += ++r) {
    counts[r] = r + 1;
    places[r] = end;
  }
  for (int form = 0; form < 6; ++form) {
    request = MPI_REQUEST_NULL;
    for (int i = 0; i <= rank_; ++i) mine[i] = rank_ * 100 + i;
    for (int i = 0; i < end; ++i) all[i] = -1;
    if (form == 0) MPI_Allgatherv_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, world);
    if (form == 1) MPI_Iallgatherv_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, world, &request);
    if (form == 2) MPI_Gatherv_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, 0, world);
    if (form == 3) MPI_Igatherv_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, 0, world, &request);
    if (form == 4) MPI_Allgatherv_init_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, world, info, &request);
    if (form == 5) MPI_Gatherv_init_c(mine, rank_ + 1, MPI_INT, all, counts, places, MPI_INT, 0, world, info, &request);
    complete(&request, form >= 4);
    if (form >= 2 && form != 4) MPI_Bcast_c(all, end, MPI_INT, 0, world);
    for (int r = 0; r < size_; ++r)
      for (int i = 0; i <= r; ++i) CHECK_EQ(all[places[r] + i], r * 100 + i);
    memset(mine, 0, (size_t)(size_ + 1) * sizeof *mine);
    if (form < 4 && form % 2 == 0) MPI_Scatterv_c(all, counts, places, MPI_INT, mine, rank_ + 1, MPI_INT, 0, world);
    if (form < 4 && form % 2 == 1)
      MPI_Iscatterv_c(all, counts, places, MPI_INT, mine, rank_ + 1, MPI_INT, 0, world, &request);
    if (form >= 4)
      MPI_Scatterv_init_c(all, counts, places, MPI_INT, mine, rank_ + 1, MPI_INT, 0, world, info, &request);
    complete(&request, form >= 4);
    for (int i = 0; i <= rank_; ++i) CHECK_EQ(mine[i], rank_ * 100 + i);
    if (form < 4 && form % 2 == 0) MPI_Reduce_scatter_c(all, mine, counts, MPI_INT, MPI_SUM, world);
    if (form < 4 && form % 2 == 1) MPI_Ireduce_scatter_c(all, mine, counts, MPI_INT, MPI_SUM, world, &request);
    if (form >= 4) MPI_Reduce_scatter_init_c(all, mine, counts, MPI_INT, MPI_SUM, world, info, &request);
    complete(&request, form >= 4);
    for (int i = 0; i <= rank_; ++i) CHECK_EQ(mine[i], size_ * (rank_ * 100 + i));
  }
  free(counts);
  free(places);
  free(all);
  free(mine);
}

/* Each rank sends one element to every other; what comes is stored backwards. */
static void exchanges(void) {
  MPI_Count *counts = malloc((size_t)size_ * sizeof *counts);
  MPI_Aint *places = malloc((size_t)size_ * 4 * sizeof *places), *back = places + size_, *bytes = back + size_,
           *back_bytes = bytes + size_;
  MPI_Datatype *types = malloc((size_t)size_ * sizeof(MPI_Datatype));
  int *out = malloc((size_t)size_ * sizeof *out), *in = malloc((size_t)size_ * sizeof *in);
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Info info = MPI_INFO_NULL;
  for (int r = 0; r < size_; ++r) {
    counts[r] = 1;
    places[r] = r;
    back[r] = size_ - 1 - r;
    bytes[r] = places[r] * (int)sizeof(int);
    back_bytes[r] = back[r] * (int)sizeof(int);
    types[r] = MPI_INT;
    out[r] = rank_ * 1000 + r;
  }
  for (int form = 0; form < 6; ++form) {
    MPI_Request request = MPI_REQUEST_NULL;
    for (int r = 0; r < size_; ++r) in[r] = -1;
    if (form == 0) MPI_Alltoallv_c(out, counts, places, MPI_INT, in, counts, back, MPI_INT, world);
    if (form == 1) MPI_Ialltoallv_c(out, counts, places, MPI_INT, in, counts, back, MPI_INT, world, &request);
    if (form == 2) MPI_Alltoallw_c(out, counts, bytes, types, in, counts, back_bytes, types, world);
    if (form == 3) MPI_Ialltoallw_c(out, counts, bytes, types, in, counts, back_bytes, types, world, &request);
    if (form == 4) MPI_Alltoallv_init_c(out, counts, places, MPI_INT, in, counts, back, MPI_INT, world, info, &request);
    if (form == 5)
      MPI_Alltoallw_init_c(out, counts, bytes, types, in, counts, back_bytes, types, world, info, &request);
    complete(&request, form >= 4);
    for (int r = 0; r < size_; ++r) CHECK_EQ(in[size_ - 1 - r], r * 1000 + rank_);
  }
  free(counts);
  free(places);
  free(types);
  free(out);
  free(in);
}

static void neighbors(void) {
  const MPI_Count counts[2] = {1, 2};
  const MPI_Aint places[2] = {0, 1}, bytes[2] = {0, sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  const int from[2] = {before_, before_}, to[2] = {next_, next_};
  const int out[3] = {rank_, rank_ + 10, rank_ + 20};
  int in[6];
  MPI_Comm graph;
  MPI_Request request;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  for (int form = 0; form < 6; ++form) {
    memset(in, 0, sizeof in);
    request = MPI_REQUEST_NULL;
    if (form == 0) MPI_Neighbor_alltoallv_c(out, counts, places, MPI_INT, in, counts, places, MPI_INT, graph);
    if (form == 1)
      MPI_Ineighbor_alltoallv_c(out, counts, places, MPI_INT, in, counts, places, MPI_INT, graph, &request);
    if (form == 2) MPI_Neighbor_alltoallw_c(out, counts, bytes, types, in, counts, bytes, types, graph);
    if (form == 3) MPI_Ineighbor_alltoallw_c(out, counts, bytes, types, in, counts, bytes, types, graph, &request);
    if (form == 4) MPI_Neighbor_alltoall_c(out, 1, MPI_INT, in, 1, MPI_INT, graph);
    if (form == 5) MPI_Ineighbor_alltoall_c(out, 1, MPI_INT, in, 1, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == before_ && in[1] == before_ + 10 && in[2] == (form < 4 ? before_ + 20 : 0));
  }
  const MPI_Count ones[2] = {1, 1};
  const MPI_Aint apart[2] = {4, 0};
  for (int form = 0; form < 4; ++form) {
    memset(in, 0, sizeof in);
    request = MPI_REQUEST_NULL;
    if (form == 0) MPI_Neighbor_allgatherv_c(out, 1, MPI_INT, in, ones, apart, MPI_INT, graph);
    if (form == 1) MPI_Ineighbor_allgatherv_c(out, 1, MPI_INT, in, ones, apart, MPI_INT, graph, &request);
    if (form == 2) MPI_Neighbor_allgather_c(out, 1, MPI_INT, in, 1, MPI_INT, graph);
    if (form == 3) MPI_Ineighbor_allgather_c(out, 1, MPI_INT, in, 1, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == before_ && in[form < 2 ? 4 : 1] == before_);
  }
  MPI_Comm_free(&graph);
}

static MPI_Count counted;

/* Keeps the operand of the highest rank, and counts. */
static void last_of(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
  (void)in, (void)inout, (void)type;
  counted = *count;
}

static void first_of(void *in, void *inout, int *count, MPI_Datatype *type) {
  (void)type;
  memcpy(inout, in, (size_t)*count * sizeof(int));
}

static void operators(void) {
  int value = rank_, result = -1, commutes = -1;
  MPI_Op op, small;
  MPI_Op_create_c(last_of, 0, &op);
  MPI_Op_create(first_of, 0, &small);
  MPI_Op_commutative(op, &commutes);
  CHECK_EQ(commutes, 0);
  MPI_Allreduce(&value, &result, 1, MPI_INT, op, MPI_COMM_WORLD);
  CHECK_EQ(result, size_ - 1);
  MPI_Allreduce_c(&value, &result, 1, MPI_INT, op, MPI_COMM_WORLD);
  CHECK_EQ(result, size_ - 1);
  MPI_Allreduce_c(&value, &result, 1, MPI_INT, small, MPI_COMM_WORLD);
  CHECK_EQ(result, 0);
  MPI_Reduce_local_c(&value, &result, 1, MPI_INT, op);
  CHECK_EQ(counted, 1);
  MPI_Reduce_local_c(&value, &result, 1, MPI_INT, small);
  CHECK_EQ(result, rank_);
  MPI_Reduce_local_c(&value, &result, 1, MPI_INT, MPI_SUM);
  CHECK_EQ(result, 2 * rank_);
  MPI_Op_free(&op);
  MPI_Op_free(&small);
}

/* Memory of any length that has PIECE bytes. */
static char *map_many_times(size_t length) {
  char name[] = "/tmp/canele-large-XXXXXX";
  const int file = mkstemp(name);
  char *memory = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(file >= 0 && unlink(name) == 0 && ftruncate(file, PIECE) == 0 && memory != MAP_FAILED);
  for (size_t place = 0; place < length; place += PIECE) {
    CHECK(mmap(memory + place, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
  }
  close(file);
  return memory;
}

static void huge(void) {
  const MPI_Count count = (MPI_Count)INT_MAX + 1 + PIECE;
  char *memory = map_many_times((size_t)count);
  MPI_Status status;
  int small = -1;
  if (rank_ == 0) fill(memory, PIECE, 1);
  if (rank_ == 0) {
    MPI_Send_c(memory, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  } else if (rank_ == 1) {
    MPI_Recv_c(memory, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status);
    check_count(&status, MPI_CHAR, count);
    MPI_Get_count(&status, MPI_CHAR, &small);
    CHECK_EQ(small, MPI_UNDEFINED);
    CHECK(matches(memory, PIECE, 1));
  }
  if (rank_ == 0) fill(memory, PIECE, 2);
  MPI_Bcast_c(memory, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK(matches(memory, PIECE, 2));
  munmap(memory, (size_t)count);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  next_ = (rank_ + 1) % size_;
  before_ = (rank_ + size_ - 1) % size_;
  if (argc > 1) {
    huge();
    return finish();
  }
  messages();
  errors();
  vectors();
  exchanges();
  neighbors();
  operators();
  return finish();
}

#else
int main(void) { return 0; }
#endif
