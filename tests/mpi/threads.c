/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_THREAD_MULTIPLE: threads exchange messages, complete each other's requests, make and free datatypes, and use
 * communicators of their own at once.
 */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 200 };
static MPI_Comm comms[THREADS];

/* Thread t of each rank exchanges messages with thread t of its neighbours; the tag tells the threads apart. */
static void ring(int id) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  char out[20000], in[20000];
  for (int round = 0; round < ROUNDS; ++round) {
    const int length = round * 97 % 20000;
    MPI_Request request;
    MPI_Status status;
    int count;
    fill(out, (size_t)length, rank_ + id + round);
    MPI_Irecv(in, sizeof in, MPI_BYTE, before, id, MPI_COMM_WORLD, &request);
    MPI_Send(out, length, MPI_BYTE, next, id, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, length);
    CHECK(matches(in, (size_t)length, before + id + round));
  }
}

/* Each thread starts requests, and completes those that its neighbour thread has started. */
enum { HANDED = 40 };
static MPI_Request handed[THREADS][2 * HANDED];
static int handed_in[THREADS][HANDED], handed_out[THREADS][HANDED];
static pthread_barrier_t turn;

static void hand_over(int id) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_, other = (id + 1) % THREADS;
  for (int round = 0; round < ROUNDS / 4; ++round) {
    for (int i = 0; i < HANDED; ++i) {
      const int tag = 1000 + id * HANDED + i;
      handed_out[id][i] = round * 1000 + rank_ + i;
      MPI_Irecv(&handed_in[id][i], 1, MPI_INT, before, tag, MPI_COMM_WORLD, &handed[id][2 * i]);
      MPI_Isend(&handed_out[id][i], 1, MPI_INT, next, tag, MPI_COMM_WORLD, &handed[id][2 * i + 1]);
    }
    pthread_barrier_wait(&turn);
    MPI_Waitall(2 * HANDED, handed[other], MPI_STATUSES_IGNORE);
    for (int i = 0; i < HANDED; ++i) CHECK_EQ(handed_in[other][i], round * 1000 + before + i);
    pthread_barrier_wait(&turn);
  }
}

static void types(int id) {
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Datatype type;
    int memory[64], flat[16];
    MPI_Type_vector(16, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 64; ++i) memory[i] = id * 1000 + i;
    MPI_Sendrecv(memory, 1, type, rank_, 50 + id, flat, 16, MPI_INT, rank_, 50 + id, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    for (int i = 0; i < 16; ++i) CHECK_EQ(flat[i], id * 1000 + i * 3);
  }
}

static void collectives(int id) {
  for (int round = 0; round < ROUNDS / 4; ++round) {
    int sum = 0, mine = rank_ * (id + 1) + round;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comms[id]);
    CHECK_EQ(sum, size_ * (size_ - 1) / 2 * (id + 1) + size_ * round);
    if (round % 10 == 0) {
      MPI_Comm copy, again;
      MPI_Group group;
      MPI_Request requests[2];
      int total = 0;
      MPI_Comm_dup(comms[id], &copy);
      MPI_Comm_group(MPI_COMM_WORLD, &group);
      MPI_Comm_create_group(MPI_COMM_WORLD, group, id,
                            &again); /* all threads in one communicator, told apart by tags */
      MPI_Ibarrier(copy, &requests[0]);
      MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, again, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      CHECK_EQ(total, sum);
      MPI_Group_free(&group);
      MPI_Comm_free(&again);
      MPI_Comm_free(&copy);
    }
  }
}

static void *run(void *argument) {
  const int id = (int)(size_t)argument;
  ring(id);
  hand_over(id);
  types(id);
  collectives(id);
  return NULL;
}

/* All threads of rank 0 receive from any rank; nothing is lost or received twice. */
static char seen[THREADS * ROUNDS * 16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *collect(void *argument) {
  const int number = (int)(size_t)argument;
  for (int i = 0; i < number; ++i) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_mutex_lock(&lock);
    CHECK(value >= 0 && !seen[value]);
    seen[value] = 1;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void shared_receives(void) {
  const int senders = size_ - 1 > 16 ? 16 : size_ - 1;
  if (rank_ == 0) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; ++i) {
      pthread_create(&threads[i], NULL, collect, (void *)(size_t)(senders * ROUNDS));
    }
    for (size_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < senders * ROUNDS * THREADS; ++i) CHECK(seen[i]);
  } else if (rank_ <= senders) {
    for (int i = 0; i < ROUNDS * THREADS; ++i) {
      const int value = (rank_ - 1) * ROUNDS * THREADS + i;
      MPI_Send(&value, 1, MPI_INT, 0, 77, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  pthread_t threads[THREADS];
  pthread_barrier_init(&turn, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, run, (void *)i);
  for (size_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  shared_receives();
  return finish();
}
