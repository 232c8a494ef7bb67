/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators: dup, split, create_group; messages of one are never seen in another; ranks are translated.
 */
#include "check.h"

static int rank_in(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

static int size_of(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

/* Sends each rank's world rank to every rank; receives with a wildcard. */
static void talk(MPI_Comm comm, const int *world_ranks) {
  const int size = size_of(comm), me = rank_in(comm);
  for (int peer = 0; peer < size; ++peer) {
    MPI_Request request;
    MPI_Isend(&rank_, 1, MPI_INT, peer, 5, comm, &request);
    MPI_Request_free(&request);
  }
  for (int i = 0; i < size; ++i) {
    int world = -1;
    MPI_Status status;
    MPI_Recv(&world, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    CHECK_EQ(world, world_ranks[status.MPI_SOURCE]);
  }
  CHECK_EQ(world_ranks[me], rank_);
  MPI_Barrier(comm);
}

static void isolation(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  CHECK(copy != MPI_COMM_WORLD && copy != MPI_COMM_NULL);
  CHECK_EQ(rank_in(copy), rank_);
  CHECK_EQ(size_of(copy), size_);
  int result;
  MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm_compare(copy, copy, &result);
  CHECK_EQ(result, MPI_IDENT);
  /* Equal source, equal tag, two communicators: received in the other order than sent. */
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  int first = 1, second = 2, a = 0, b = 0;
  MPI_Request requests[2];
  MPI_Isend(&first, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&second, 1, MPI_INT, next, 3, copy, &requests[1]);
  MPI_Recv(&b, 1, MPI_INT, before, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
  MPI_Recv(&a, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(a == 1 && b == 2);
  MPI_Comm_free(&copy);
  CHECK(copy == MPI_COMM_NULL);
}

static void splitting(void) {
  MPI_Comm half, single;
  /* Even and odd ranks, in reverse order. */
  MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half);
  int *members = malloc(sizeof *members * (size_t)size_), count = 0;
  for (int rank = size_ - 1; rank >= 0; --rank) {
    if (rank % 2 == rank_ % 2) members[count++] = rank;
  }
  CHECK_EQ(size_of(half), count);
  talk(half, members);
  /* Only the first rank of each half stays. */
  MPI_Comm_split(half, rank_in(half) == 0 ? 1 : MPI_UNDEFINED, 0, &single);
  if (rank_in(half) == 0) {
    CHECK_EQ(size_of(single), 1);
    talk(single, members);
    MPI_Comm_free(&single);
  } else {
    CHECK(single == MPI_COMM_NULL);
  }
  int sum = 0;
  MPI_Allreduce(&rank_, &sum, 1, MPI_INT, MPI_SUM, half);
  int expected = 0;
  for (int i = 0; i < count; ++i) expected += members[i];
  CHECK_EQ(sum, expected);
  MPI_Comm_free(&half);
  free(members);
}

/* Only the members call create_group. */
static void groups(void) {
  MPI_Group world, part, empty_part;
  MPI_Comm comm;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int *chosen = malloc(sizeof *chosen * (size_t)size_), count = 0;
  for (int rank = size_ - 1; rank > 0; --rank) chosen[count++] = rank;
  MPI_Group_incl(world, count, chosen, &part);
  int size, rank;
  MPI_Group_size(part, &size);
  MPI_Group_rank(part, &rank);
  CHECK_EQ(size, size_ - 1);
  CHECK_EQ(rank, rank_ == 0 ? MPI_UNDEFINED : size_ - 1 - rank_);
  int *translated = malloc(sizeof *translated * (size_t)size_), *all = malloc(sizeof *all * (size_t)size_);
  for (int i = 0; i < size_; ++i) all[i] = i;
  MPI_Group_translate_ranks(world, size_, all, part, translated);
  for (int i = 0; i < size_; ++i) CHECK_EQ(translated[i], i == 0 ? MPI_UNDEFINED : size_ - 1 - i);
  if (rank_ != 0) {
    for (int round = 0; round < 3; ++round) {
      MPI_Comm_create_group(MPI_COMM_WORLD, part, 17, &comm);
      talk(comm, chosen);
      MPI_Comm_free(&comm);
    }
  }
  MPI_Group_incl(world, 0, NULL, &empty_part);
  CHECK(empty_part == MPI_GROUP_EMPTY);
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  CHECK(part == MPI_GROUP_NULL);
  free(chosen);
  free(translated);
  free(all);
}

/* Freed while a receive is pending: the message still arrives. */
static void freed_early(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  int value = -1;
  MPI_Request requests[2];
  MPI_Irecv(&value, 1, MPI_INT, before, 0, copy, &requests[0]);
  MPI_Isend(&rank_, 1, MPI_INT, next, 0, copy, &requests[1]);
  MPI_Comm_free(&copy);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(value, before);
}

static void many(void) {
  MPI_Comm copies[20];
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) MPI_Comm_dup(i == 0 ? MPI_COMM_WORLD : copies[i - 1], &copies[i]);
    for (int i = 19; i >= 0; --i) {
      int value = rank_ == 0 ? i : -1;
      MPI_Bcast(&value, 1, MPI_INT, 0, copies[i]);
      CHECK_EQ(value, i);
      for (int k = 0; k < i; ++k) CHECK(copies[k] != copies[i]);
    }
    for (int i = 0; i < 20; ++i) MPI_Comm_free(&copies[i]);
  }
}

static void properties(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length, flag = 0, *bound = NULL;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_set_name(copy, "mine");
  MPI_Comm_get_name(copy, name, &length);
  CHECK(strcmp(name, "mine") == 0 && length == 4);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  CHECK(flag && *bound >= 32767);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
  talk(copy, &rank_);
  MPI_Comm_free(&copy);
  talk(MPI_COMM_SELF, &rank_);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  isolation();
  splitting();
  groups();
  freed_early();
  many();
  properties();
  return finish();
}
