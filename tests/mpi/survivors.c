/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One rank is killed. What needs it ends with MPI_ERR_PROC_ABORTED on the others; all else works, as does MPI_Finalize.
 *
 * Argument: the rank that is killed. Run by run_mpi.py (Survivors).
 */
#include <signal.h>

#include "check.h"

static int victim_;

#define ABORTED(call) CHECK_EQ(class_of(call), MPI_ERR_PROC_ABORTED)

/* The living ranks, in a ring. */
static int neighbor(int step) {
  int rank = rank_;
  do rank = (rank + step + size_) % size_;
  while (rank == victim_);
  return rank;
}

static void messages_with_the_dead(void) {
  const int length = 1 << 22;
  char *data = malloc((size_t)length), more[8] = {0};
  memset(data, 1, (size_t)length);
  MPI_Request requests[2];
  ABORTED(MPI_Recv(data, length, MPI_CHAR, victim_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  ABORTED(MPI_Send(data, length, MPI_CHAR, victim_, 1, MPI_COMM_WORLD));
  ABORTED(MPI_Ssend(more, 8, MPI_CHAR, victim_, 1, MPI_COMM_WORLD));
  ABORTED(MPI_Sendrecv(more, 8, MPI_CHAR, neighbor(1), 2, data, 8, MPI_CHAR, victim_, 2, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE));
  MPI_Recv(more, 8, MPI_CHAR, neighbor(-1), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv_init(data, length, MPI_CHAR, victim_, 3, MPI_COMM_WORLD, &requests[0]);
  for (int i = 0; i < 2; ++i) {
    MPI_Start(&requests[0]);
    ABORTED(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  }
  MPI_Request_free(&requests[0]);

  MPI_Status statuses[2];
  MPI_Irecv(data, length, MPI_CHAR, victim_, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(more, 8, MPI_CHAR, neighbor(-1), 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(more, 8, MPI_CHAR, neighbor(1), 4, MPI_COMM_WORLD);
  CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
  CHECK_EQ(class_of(statuses[0].MPI_ERROR), MPI_ERR_PROC_ABORTED);
  CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
  free(data);
}

static void probes_of_the_dead(void) {
  int flag;
  MPI_Status status;
  MPI_Message message;
  ABORTED(MPI_Probe(victim_, 5, MPI_COMM_WORLD, &status));
  ABORTED(MPI_Mprobe(victim_, 5, MPI_COMM_WORLD, &message, &status));
  ABORTED(MPI_Iprobe(victim_, 5, MPI_COMM_WORLD, &flag, &status));
  ABORTED(MPI_Improbe(victim_, 5, MPI_COMM_WORLD, &flag, &message, &status));
}

static void collectives_with_the_dead(MPI_Comm before) {
  int mine = 1, sum;
  MPI_Request request;
  MPI_Comm copy;
  ABORTED(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  ABORTED(MPI_Wait(&request, MPI_STATUS_IGNORE));
  ABORTED(MPI_Barrier(before));
  ABORTED(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  ABORTED(MPI_Comm_split(MPI_COMM_WORLD, 0, rank_, &copy));
  ABORTED(MPI_Comm_disconnect(&before));
  MPI_Comm_free(&before);
}

static void window_with_the_dead(MPI_Win window, MPI_Comm living) {
  const int value = 7;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  MPI_Put(&value, 1, MPI_INT, neighbor(1), 0, 1, MPI_INT, window);
  CHECK_EQ(MPI_Win_flush(neighbor(1), window), MPI_SUCCESS);
  const int put = class_of(MPI_Put(&value, 1, MPI_INT, victim_, 0, 1, MPI_INT, window));
  const int flushed = class_of(MPI_Win_flush(victim_, window));
  CHECK(put == MPI_ERR_PROC_ABORTED || flushed == MPI_ERR_PROC_ABORTED);
  MPI_Win_unlock_all(window);
  MPI_Barrier(living); /* the next call does not wait for the others */
  ABORTED(MPI_Win_free(&window));
}

static MPI_Comm living_ranks(void) {
  MPI_Group world, living;
  MPI_Comm comm;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, &victim_, &living);
  CHECK_EQ(MPI_Comm_create_group(MPI_COMM_WORLD, living, 7, &comm), MPI_SUCCESS);
  MPI_Group_free(&living);
  MPI_Group_free(&world);
  return comm;
}

static void among_the_living(MPI_Comm comm) {
  MPI_Comm half;
  MPI_Win window;
  int mine = 1, sum = 0, token = -1, *memory;
  MPI_Sendrecv(&rank_, 1, MPI_INT, neighbor(1), 6, &token, 1, MPI_INT, neighbor(-1), 6, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQ(token, neighbor(-1));

  CHECK_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, size_ - 1);
  CHECK_EQ(MPI_Comm_split(comm, rank_ % 2, 0, &half), MPI_SUCCESS);
  CHECK_EQ(MPI_Barrier(half), MPI_SUCCESS);
  CHECK_EQ(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &memory, &window), MPI_SUCCESS);
  *memory = 0;
  CHECK_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
  MPI_Accumulate(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  CHECK_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
  int place;
  MPI_Comm_rank(comm, &place);
  CHECK(place != 0 || *memory == size_ - 1);
  MPI_Win_free(&window);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(argc == 2 && size_ >= 3);
  victim_ = atoi(argv[1]);
  MPI_Comm before;
  MPI_Win window;
  int *memory;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &before);
  MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_ == victim_) raise(SIGKILL);
  messages_with_the_dead();
  probes_of_the_dead();
  collectives_with_the_dead(before);
  MPI_Comm living = living_ranks();
  window_with_the_dead(window, living);
  among_the_living(living);
  MPI_Comm_free(&living);
  printf("rank %d has survived\n", rank_);
  MPI_Finalize();
  return 0;
}
