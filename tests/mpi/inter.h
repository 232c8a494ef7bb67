/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inter.h - the ranks of MPI_COMM_WORLD in two groups, and the intercommunicator between them. One thread.
 */
#ifndef CANELE_TESTS_MPI_INTER_H
#define CANELE_TESTS_MPI_INTER_H

#include "both.h"

/* This rank's own group and the other one. */
struct sides {
  MPI_Comm own, inter;
  int upper; /* whether this rank is in the second group */
  int rank, size, remote_size;
  int ranks[16], remote[16]; /* world ranks */
};

/* The group that a world rank belongs to. Kinds: all but the first, odd ranks, all but the last with reversed ranks. */
enum { KINDS = 3 };
static inline int group_of(int kind, int rank) {
  return kind == 0 ? rank > 0 : kind == 1 ? rank % 2 : rank < size_ - 1;
}

static inline struct sides make_sides(int kind) {
  struct sides made;
  memset(&made, 0, sizeof made);
  made.upper = group_of(kind, rank_);
  const int step = kind == 2 ? -1 : 1;
  for (int i = 0; i < size_; ++i) {
    const int rank = step > 0 ? i : size_ - 1 - i;
    if (group_of(kind, rank) == made.upper) {
      made.ranks[made.size++] = rank;
    } else {
      made.remote[made.remote_size++] = rank;
    }
  }
  MPI_Comm_split(MPI_COMM_WORLD, made.upper, step * rank_, &made.own);
  MPI_Comm_rank(made.own, &made.rank);
  /* The leaders are the last of one group and the first of the other one. */
  const int leader = made.upper ? made.size - 1 : 0;
  const int remote_leader = made.remote[made.upper ? 0 : made.remote_size - 1];
  MPI_Comm peer = made.rank == leader ? MPI_COMM_WORLD : MPI_COMM_NULL;
  CHECK_EQ(MPI_Intercomm_create(made.own, leader, peer, remote_leader, 7, &made.inter), MPI_SUCCESS);
  return made;
}

static inline void free_sides(struct sides *made) {
  MPI_Comm_free(&made->own);
  MPI_Comm_free(&made->inter);
}

#endif
