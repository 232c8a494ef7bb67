/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for buffered sends of the process, of communicators and of sessions: which one a message takes, flushes, and
 * memory that is detached or freed while messages are in it.
 */
#include "check.h"

enum { LENGTH = 100000 };
static char out[LENGTH], in[LENGTH], ignored[5][LENGTH];
static MPI_Session session_ = MPI_SESSION_NULL;

static int next_of(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  return (rank + 1) % size;
}

/* Says whether a message of this length finds room. */
static int fits(MPI_Comm comm, int length) {
  const int code = MPI_Bsend(out, length, MPI_CHAR, next_of(comm), 1, comm);
  if (code != MPI_SUCCESS) {
    CHECK_EQ(class_of(code), MPI_ERR_BUFFER);
    return 0;
  }
  MPI_Recv(in, length, MPI_CHAR, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE);
  MPI_Comm_flush_buffer(comm); /* so that there is room again */
  MPI_Buffer_flush();
  if (session_ != MPI_SESSION_NULL) MPI_Session_flush_buffer(session_);
  return 1;
}

/* The memory of a communicator comes first, and is for that one only. */
static void of_communicators(void) {
  char small[MPI_BSEND_OVERHEAD + 100], *large = malloc(MPI_BSEND_OVERHEAD + LENGTH), other[8];
  void *got = NULL;
  int size = 0;
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  CHECK(!fits(a, 1));
  CHECK_EQ(MPI_Comm_attach_buffer(a, small, sizeof small), MPI_SUCCESS);
  CHECK(fits(a, 100) && !fits(a, 1000) && !fits(b, 1));
  CHECK_EQ(class_of(MPI_Comm_attach_buffer(a, other, sizeof other)), MPI_ERR_BUFFER);
  CHECK_EQ(MPI_Buffer_attach(large, MPI_BSEND_OVERHEAD + LENGTH), MPI_SUCCESS);
  CHECK(!fits(a, 1000) && fits(b, LENGTH));
  CHECK_EQ(MPI_Comm_detach_buffer(a, &got, &size), MPI_SUCCESS);
  CHECK(got == small && size == (int)sizeof small);
  CHECK(fits(a, LENGTH));
  CHECK_EQ(class_of(MPI_Comm_detach_buffer(a, &got, &size)), MPI_ERR_BUFFER);
  CHECK_EQ(MPI_Buffer_detach(&got, &size), MPI_SUCCESS);
  CHECK(got == large && !fits(a, 1));
  CHECK_EQ(MPI_Comm_attach_buffer(a, MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
  CHECK(fits(a, LENGTH) && !fits(b, 1));
  MPI_Comm_free(&a);
  MPI_Comm_free(&b);
  free(large);
}

/* Data alone takes room: programs reckon with the overhead of the MPI that they were written for. A message that has
 * been received makes room for one of its length, between the others. */
static void exact_room(void) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_, order[] = {1, 3, 0, 2};
  char *room;
  void *got;
  int size;
  if (next == rank_) return;
  room = malloc(3 * LENGTH);
  CHECK_EQ(MPI_Buffer_attach(room, 3 * LENGTH), MPI_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    fill(out, LENGTH, 10 * rank_ + i);
    CHECK_EQ(MPI_Bsend(out, LENGTH, MPI_CHAR, next, i, MPI_COMM_WORLD), MPI_SUCCESS);
  }
  CHECK_EQ(class_of(MPI_Bsend(out, 1, MPI_CHAR, next, 3, MPI_COMM_WORLD)), MPI_ERR_BUFFER);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 4; ++i) {
    MPI_Recv(in, LENGTH, MPI_CHAR, before, order[i], MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(matches(in, LENGTH, 10 * before + order[i]));
    if (i > 0) continue;
    fill(out, LENGTH, 10 * rank_ + 3);
    while (MPI_Bsend(out, LENGTH, MPI_CHAR, next, 3, MPI_COMM_WORLD) != MPI_SUCCESS) {
    }
  }
  CHECK_EQ(MPI_Buffer_detach(&got, &size), MPI_SUCCESS);
  CHECK(got == room && size == 3 * LENGTH);
  free(room);
}

/* A flush ends when the other rank has received what was buffered before, and not earlier. */
static void flushes(int process) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  void *got;
  int size, flag = 0;
  MPI_Comm comm;
  MPI_Request requests[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (process) {
    CHECK_EQ(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_Buffer_iflush(&requests[0]), MPI_SUCCESS);
  } else {
    CHECK_EQ(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_iflush_buffer(comm, &requests[0]), MPI_SUCCESS);
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* of nothing */
  fill(out, LENGTH, rank_);
  for (int i = 0; i < 5; ++i) MPI_Bsend(out, LENGTH, MPI_CHAR, next, 2, comm);
  for (int i = 0; i < 3; ++i)
    CHECK_EQ(process ? MPI_Buffer_iflush(&requests[i]) : MPI_Comm_iflush_buffer(comm, &requests[i]), MPI_SUCCESS);
  if (next != rank_) {
    MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0); /* so much data goes when it is received */
  }
  MPI_Barrier(comm);
  memset(out, 0, sizeof out); /* was copied */
  for (int i = 0; i < 5; ++i) {
    MPI_Recv(in, LENGTH, MPI_CHAR, before, 2, comm, MPI_STATUS_IGNORE);
    CHECK(matches(in, LENGTH, before));
  }
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 5; ++i) MPI_Bsend(out, LENGTH, MPI_CHAR, next, 3, comm);
  for (int i = 0; i < 5; ++i)
    MPI_Irecv(ignored[i], LENGTH, MPI_CHAR, before, 3, comm, &requests[0]), MPI_Request_free(requests);
  CHECK_EQ(process ? MPI_Buffer_flush() : MPI_Comm_flush_buffer(comm), MPI_SUCCESS);
  if (process) CHECK_EQ(MPI_Buffer_detach(&got, &size), MPI_SUCCESS);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

/* The memory of a session is for what is made of its groups. */
static void of_sessions(void) {
  char room[MPI_BSEND_OVERHEAD + 100];
  void *got;
  int size;
  MPI_Group world, group, same;
  MPI_Comm comm, part;
  MPI_Request request;
  CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session_), MPI_SUCCESS);
  MPI_Group_from_session_pset(session_, "mpi://WORLD", &world);
  MPI_Group_union(world, world, &group);
  MPI_Group_range_incl(group, 1, (int[1][3]){{size_ - 1, 0, -1}}, &same);
  MPI_Comm_create_from_group(same, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_split(comm, rank_ % 2, 0, &part);
  CHECK(!fits(part, 1));
  CHECK_EQ(MPI_Session_attach_buffer(session_, room, sizeof room), MPI_SUCCESS);
  CHECK(fits(comm, 100) && !fits(comm, 1000) && fits(part, 100) && !fits(MPI_COMM_WORLD, 1));
  CHECK_EQ(MPI_Session_flush_buffer(session_), MPI_SUCCESS);
  CHECK_EQ(MPI_Session_iflush_buffer(session_, &request), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(MPI_Session_detach_buffer(session_, &got, &size), MPI_SUCCESS);
  CHECK(got == room && size == (int)sizeof room && !fits(part, 1));
  CHECK_EQ(MPI_Comm_attach_buffer(part, room, sizeof room), MPI_SUCCESS);
  CHECK(fits(part, 100) && !fits(comm, 1));
  MPI_Comm_free(&part);
  MPI_Comm_free(&comm);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  MPI_Group_free(&same);
  CHECK_EQ(MPI_Session_finalize(&session_), MPI_SUCCESS);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  of_communicators();
  exact_room();
  flushes(0);
  flushes(1);
  of_sessions();
  return finish();
}
