/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small print of MPI that programs rely on. The thread level that was asked for, the count of a truncated message,
 * bounds of structures with resized members. Arithmetic on MPI_BYTE, aliased buffers, messages to MPI_PROC_NULL. Calls
 * that complete many requests, each of which must find all of them.
 *
 * Run by ctest, with two ranks; "level [N]" alone. One thread.
 */
#include <stddef.h>

#include "check.h"

static int thread_level(int argc, char **argv) {
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  const int wanted = levels[argc > 2 ? atoi(argv[2]) : 0];
  int provided = wanted, asked;
  if (argc > 2) {
    MPI_Init_thread(&argc, &argv, wanted, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  CHECK_EQ(provided, wanted);
  MPI_Query_thread(&asked);
  CHECK_EQ(asked, wanted);
  return MPI_Finalize();
}

/* Six ints come, four fit: the count is the number received. */
static void truncated(void) {
  int out[6] = {1, 2, 3, 4, 5, 6}, in[5] = {0, 0, 0, 0, -1}, count = -1, index, flag = 0;
  for (int form = 0; form < 5; ++form) {
    MPI_Request request = MPI_REQUEST_NULL, sent;
    MPI_Status status;
    int code = MPI_SUCCESS;
    if (form > 0) MPI_Irecv(in, 4, MPI_INT, rank_, form, MPI_COMM_WORLD, &request);
    MPI_Isend(out, 6, MPI_INT, rank_, form, MPI_COMM_WORLD, &sent);
    if (form == 0) code = MPI_Recv(in, 4, MPI_INT, rank_, form, MPI_COMM_WORLD, &status);
    if (form == 1) code = MPI_Wait(&request, &status);
    if (form == 2) code = MPI_Waitany(1, &request, &index, &status);
    if (form == 3) code = MPI_Waitall(1, &request, &status) == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS;
    while (form == 4 && !flag) code = MPI_Testany(1, &request, &index, &flag, &status);
    CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 4);
    CHECK_EQ(in[3], 4);
    CHECK_EQ(in[4], -1);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
}

/* MPI 3.1, 4.1.6: where members have markers, only those count. */
static void bounds(void) {
  MPI_Datatype wide, both, twice, plain;
  MPI_Aint lower, extent;
  const int blocks[3] = {1, 1, 1};
  const MPI_Aint places[3] = {0, 16, 64};
  MPI_Type_create_resized(MPI_INT, 0, 12, &wide);
  const MPI_Datatype members[3] = {MPI_INT, wide, MPI_INT};
  for (int order = 0; order < 2; ++order) {
    const MPI_Aint turned[3] = {places[2], places[1], places[0]};
    MPI_Type_create_struct(3, blocks, order == 0 ? places : turned, members, &both);
    MPI_Type_get_extent(both, &lower, &extent);
    CHECK_EQ(lower, 16);
    CHECK_EQ(extent, 12);
    MPI_Type_get_true_extent(both, &lower, &extent);
    CHECK_EQ(lower, 0);
    CHECK_EQ(extent, 68);
    const MPI_Datatype pair[2] = {both, MPI_DOUBLE}; /* markers of members of members count, too */
    MPI_Type_create_struct(2, blocks, places, pair, &twice);
    MPI_Type_get_extent(twice, &lower, &extent);
    CHECK_EQ(lower, 16);
    CHECK_EQ(extent, 12);
    MPI_Type_free(&twice);
    MPI_Type_free(&both);
  }
  const MPI_Datatype usual[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, blocks, places, usual, &plain);
  MPI_Type_get_extent(plain, &lower, &extent);
  CHECK_EQ(lower, 0);
  CHECK_EQ(extent, 24);
  MPI_Type_free(&plain);
  MPI_Type_free(&wide);
}

#ifdef CANELE_MPI /* other MPIs may refuse these, or crash */
static void bytes(void) {
  const MPI_Op ops[4] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  const unsigned char wanted[4] = {(unsigned char)(200 + 100), (unsigned char)(200 * 100), 100, 200};
  for (int i = 0; i < 4; ++i) {
    unsigned char in = 200, inout = 100, mine = (unsigned char)(rank_ == 0 ? 200 : 100), all = 0;
    CHECK_EQ(MPI_Reduce_local(&in, &inout, 1, MPI_BYTE, ops[i]), MPI_SUCCESS);
    CHECK_EQ(inout, wanted[i]);
    CHECK_EQ(MPI_Allreduce(&mine, &all, 1, MPI_BYTE, ops[i], MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(all, wanted[i]);
  }
}

/* The root's send buffer is in its receive buffer: an error, where each rank can know; nothing has begun. */
static void aliases(void) {
  const MPI_Comm self = MPI_COMM_SELF;
  int all[4] = {1, 2, 3, 4}, counts[1] = {1}, places[1] = {0};
  CHECK_EQ(class_of(MPI_Gather(all, 1, MPI_INT, all, 1, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Gatherv(all, 1, MPI_INT, all, counts, places, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Scatter(all, 1, MPI_INT, all, 1, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Scatterv(all, counts, places, MPI_INT, all, 1, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allgather(all, 1, MPI_INT, all, 1, MPI_INT, self)), MPI_ERR_BUFFER);
  places[0] = 1; /* the place is the send buffer, although the receive buffer begins elsewhere */
  CHECK_EQ(class_of(MPI_Gatherv(all + 1, 1, MPI_INT, all, counts, places, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Scatterv(all, counts, places, MPI_INT, all + 1, 1, MPI_INT, 0, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Allgatherv(all + 1, 1, MPI_INT, all, counts, places, MPI_INT, self)), MPI_ERR_BUFFER);
  places[0] = 0;
  CHECK_EQ(class_of(MPI_Alltoall(all, 2, MPI_INT, all, 2, MPI_INT, self)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Alltoallv(all, counts, places, MPI_INT, all, counts, places, MPI_INT, self)), MPI_ERR_BUFFER);
  CHECK_EQ(MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, all, 1, MPI_INT, 0, self), MPI_SUCCESS);
  CHECK_EQ(MPI_Gather(all, 1, MPI_INT, all + 1, 1, MPI_INT, 0, self), MPI_SUCCESS);
  CHECK_EQ(all[1], 1);
  CHECK_EQ(MPI_Gather(all, 0, MPI_INT, all, 0, MPI_INT, 0, self), MPI_SUCCESS);
  counts[0] = 0;
  CHECK_EQ(MPI_Alltoallv(all, counts, places, MPI_INT, all, counts, places, MPI_INT, self), MPI_SUCCESS);
  CHECK_EQ(class_of(MPI_Reduce_local(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM)), MPI_ERR_BUFFER);
  CHECK_EQ(class_of(MPI_Reduce_local(all, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM)), MPI_ERR_BUFFER);
}

static void proc_null(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request requests[2];
  MPI_Status status;
  int value = 7;
  CHECK_EQ(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world), MPI_SUCCESS);
  CHECK_EQ(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world, &status), MPI_SUCCESS);
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQ(MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world, &requests[0]), MPI_SUCCESS);
  CHECK_EQ(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world, &requests[1]), MPI_SUCCESS);
  CHECK_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  CHECK_EQ(MPI_Sendrecv(&value, 1, MPI_INT, rank_, 0, &value, 1, MPI_INT, rank_, 0, world, &status), MPI_SUCCESS);
  CHECK_EQ(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0,
                        world, &status),
           MPI_SUCCESS);
}
#endif

/* Many receives whose messages come in an odd order: each way to complete finds each request once, and no other one. */
enum { MANY = 300 };
static int order_of(int i) { return (i * 7) % MANY; }

static void many(void) {
  static int in[MANY], out[MANY], indices[MANY];
  static MPI_Request receives[MANY], sends[MANY];
  for (int form = 0; form < 4; ++form) {
    int left = MANY, seen[MANY] = {0};
    MPI_Request nothing = MPI_REQUEST_NULL;
    for (int i = 0; i < MANY; ++i) MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank_, i, MPI_COMM_WORLD, &receives[i]);
    for (int i = 0; i < MANY; ++i) {
      out[i] = order_of(i);
      MPI_Isend(&out[i], 1, MPI_INT, 1 - rank_, order_of(i), MPI_COMM_WORLD, &sends[i]);
    }
    while (left > 0) {
      int count = 0, flag = 1;
      if (form == 0) count = MPI_Waitany(MANY, receives, indices, MPI_STATUS_IGNORE) == MPI_SUCCESS;
      if (form == 1) MPI_Testany(MANY, receives, indices, &flag, MPI_STATUS_IGNORE);
      if (form == 1) count = flag;
      if (form == 2) MPI_Waitsome(MANY, receives, &count, indices, MPI_STATUSES_IGNORE);
      if (form == 3) MPI_Testsome(MANY, receives, &count, indices, MPI_STATUSES_IGNORE);
      CHECK(count > 0 || form % 2 == 1);
      for (int i = 0; i < count; ++i) {
        CHECK(indices[i] >= 0 && indices[i] < MANY && (i == 0 || indices[i] > indices[i - 1]));
        CHECK_EQ(seen[indices[i]]++, 0);
        CHECK_EQ(in[indices[i]], indices[i]);
        CHECK_EQ(receives[indices[i]], nothing);
      }
      left -= count;
    }
    int flag = 0, index = 0;
    while (!flag) MPI_Testall(MANY, sends, &flag, MPI_STATUSES_IGNORE);
    MPI_Waitany(MANY, receives, &index, MPI_STATUS_IGNORE);
    CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Testsome(MANY, receives, &index, indices, MPI_STATUSES_IGNORE);
    CHECK_EQ(index, MPI_UNDEFINED);
    for (int i = 0; i < MANY; ++i) CHECK_EQ(sends[i], nothing);
  }
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "level") == 0) return thread_level(argc, argv);
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  truncated();
  bounds();
#ifdef CANELE_MPI
  bytes();
  aliases();
  proc_null();
#endif
  if (size_ == 2) many();
  return finish();
}
