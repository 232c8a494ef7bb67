/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives with parts of different lengths: every root, empty parts, gaps between parts, parts in reverse order,
 * MPI_IN_PLACE, types with gaps on either side, a type for each part.
 *
 * All memory is int cells, compared as a whole with the expected cells, so nothing else may be written.
 */
#include "both.h"

/* The layout of an element, one int, in memory: `step` cells from one to the next. */
struct layout {
  MPI_Datatype type;
  int step;
};
static struct layout layouts[3];

static void make_layouts(void) {
  MPI_Datatype indexed;
  const int one = 1, second = 1;
  layouts[0] = (struct layout){MPI_INT, 1};
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &layouts[1].type);
  layouts[1].step = 2;
  MPI_Type_indexed(1, &one, &second, MPI_INT, &indexed); /* the second of three cells */
  MPI_Type_create_resized(indexed, 0, 3 * sizeof(int), &layouts[2].type);
  layouts[2].step = 3;
  MPI_Type_free(&indexed);
  for (int i = 1; i < 3; ++i) MPI_Type_commit(&layouts[i].type);
}

/* Returns the cell of element i of a part that begins at element `place`. */
static size_t cell(const struct layout *layout, int place, int i) {
  return (size_t)((place + i) * layout->step + (layout->step == 3 ? 1 : 0));
}

enum { ROOM = 4000, NOTHING = -7 };

static void clear(int *cells) {
  for (int i = 0; i < ROOM; ++i) cells[i] = NOTHING;
}

static int value(int from, int to, int i) { return from * 100000 + to * 1000 + i; }

/* Computes counts and places of the parts of `size` ranks: some empty, the last rank's part first, two elements
 * between. */
static void places(int size, int salt, int *counts, int *displacements) {
  int next = 1;
  for (int rank = size - 1; rank >= 0; --rank) {
    counts[rank] = (rank * 3 + salt) % 5;
    displacements[rank] = next;
    next += counts[rank] + 2;
  }
}

struct vectors {
  int counts[32], displacements[32];
  int *mine, *all, *expected;
};
static struct vectors v_;

static void gatherv(MPI_Comm comm, int rank, int size, int root, int place, const struct layout *from,
                    const struct layout *to) {
  const int here = place && rank == root, count = v_.counts[rank];
  clear(v_.mine);
  clear(v_.all);
  clear(v_.expected);
  for (int i = 0; i < count; ++i) v_.mine[cell(from, 0, i)] = value(rank, root, i);
  for (int i = 0; here && i < count; ++i) {
    v_.all[cell(to, v_.displacements[rank], i)] = value(rank, root, i);
  }
  for (int peer = 0; peer < size && rank == root; ++peer) {
    for (int i = 0; i < v_.counts[peer]; ++i) {
      v_.expected[cell(to, v_.displacements[peer], i)] = value(peer, root, i);
    }
  }
  const int *counts = rank == root ? v_.counts : NULL, *displacements = rank == root ? v_.displacements : NULL;
  DO_SMALL(Gatherv, gatherv, here ? MPI_IN_PLACE : v_.mine, count, from->type, v_.all, counts, displacements, to->type,
           root, comm);
  CHECK(memcmp(v_.all, v_.expected, sizeof(int) * ROOM) == 0);
}

static void scatterv(MPI_Comm comm, int rank, int size, int root, int place, const struct layout *from,
                     const struct layout *to) {
  const int here = place && rank == root, count = v_.counts[rank];
  clear(v_.mine);
  clear(v_.all);
  clear(v_.expected);
  for (int peer = 0; peer < size && rank == root; ++peer) {
    for (int i = 0; i < v_.counts[peer]; ++i) v_.all[cell(from, v_.displacements[peer], i)] = value(root, peer, i);
  }
  for (int i = 0; i < count && !here; ++i) v_.expected[cell(to, 0, i)] = value(root, rank, i);
  const int *counts = rank == root ? v_.counts : NULL, *displacements = rank == root ? v_.displacements : NULL;
  DO_SMALL(Scatterv, scatterv, v_.all, counts, displacements, from->type, here ? MPI_IN_PLACE : v_.mine, count,
           to->type, root, comm);
  CHECK(memcmp(v_.mine, v_.expected, sizeof(int) * ROOM) == 0);
}

static void allgatherv(MPI_Comm comm, int rank, int size, int place, const struct layout *from,
                       const struct layout *to) {
  const int count = v_.counts[rank];
  clear(v_.mine);
  clear(v_.all);
  clear(v_.expected);
  for (int i = 0; i < count; ++i) v_.mine[cell(from, 0, i)] = value(rank, 0, i);
  for (int i = 0; place && i < count; ++i) v_.all[cell(to, v_.displacements[rank], i)] = value(rank, 0, i);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < v_.counts[peer]; ++i) v_.expected[cell(to, v_.displacements[peer], i)] = value(peer, 0, i);
  }
  DO_SMALL(Allgatherv, allgatherv, place ? MPI_IN_PLACE : v_.mine, count, from->type, v_.all, v_.counts,
           v_.displacements, to->type, comm);
  CHECK(memcmp(v_.all, v_.expected, sizeof(int) * ROOM) == 0);
}

/* Returns the number of elements from one rank to another; equal both ways, as MPI_IN_PLACE demands. */
static int between(int a, int b) { return (a * b + a + b) % 4; }

static void pair_places(int rank, int size, int *counts, int *displacements) {
  int next = 1;
  for (int peer = size - 1; peer >= 0; --peer) {
    counts[peer] = between(rank, peer);
    displacements[peer] = next;
    next += counts[peer] + 1;
  }
}

static void alltoallv(MPI_Comm comm, int rank, int size, int place, const struct layout *from,
                      const struct layout *to) {
  int counts[32], displacements[32];
  pair_places(rank, size, counts, displacements);
  clear(v_.mine);
  clear(v_.all);
  clear(v_.expected);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < counts[peer]; ++i) {
      v_.mine[cell(from, displacements[peer], i)] = value(rank, peer, i);
      if (place) v_.all[cell(to, displacements[peer], i)] = value(rank, peer, i);
      v_.expected[cell(to, displacements[peer], i)] = value(peer, rank, i);
    }
  }
  DO_SMALL(Alltoallv, alltoallv, place ? MPI_IN_PLACE : v_.mine, counts, displacements, from->type, v_.all, counts,
           displacements, to->type, comm);
  CHECK(memcmp(v_.all, v_.expected, sizeof(int) * ROOM) == 0);
}

/* Each part has its own type: what a rank sends with one layout arrives in another. */
static void alltoallw(MPI_Comm comm, int rank, int size, int place) {
  int counts[32], displacements[32], sent[32], received[32];
  MPI_Datatype send_types[32], receive_types[32];
  pair_places(rank, size, counts, displacements);
  clear(v_.mine);
  clear(v_.all);
  clear(v_.expected);
  for (int peer = 0; peer < size; ++peer) {
    const struct layout *from = &layouts[(rank + peer) % 3], *to = &layouts[place ? (rank + peer) % 3 : peer % 3];
    send_types[peer] = from->type;
    receive_types[peer] = to->type;
    const int first = displacements[peer] * 3; /* in cells: room for the widest layout */
    sent[peer] = received[peer] = (int)sizeof(int) * first;
    for (int i = 0; i < counts[peer]; ++i) {
      v_.mine[(size_t)first + cell(from, 0, i)] = value(rank, peer, i);
      if (place) v_.all[(size_t)first + cell(to, 0, i)] = value(rank, peer, i);
      v_.expected[(size_t)first + cell(to, 0, i)] = value(peer, rank, i);
    }
  }
  DO_SMALL(Alltoallw, alltoallw, place ? MPI_IN_PLACE : v_.mine, counts, sent, send_types, v_.all, counts, received,
           receive_types, comm);
  CHECK(memcmp(v_.all, v_.expected, sizeof(int) * ROOM) == 0);
}

/* Long parts, one of them empty: more than one segment, and the memory of the program used as it is. */
static void long_parts(MPI_Comm comm, int rank, int size) {
  enum { UNIT = 30000 };
  int counts[32], displacements[32], total = 0;
  for (int peer = 0; peer < size; ++peer) {
    counts[peer] = peer * UNIT;
    displacements[peer] = total;
    total += counts[peer];
  }
  int *mine = malloc(sizeof *mine * (size_t)(counts[rank] + 1)), *all = malloc(sizeof *all * (size_t)(total + 1));
  for (int i = 0; i < counts[rank]; ++i) mine[i] = value(rank, 1, i);
  for (int i = 0; i <= total; ++i) all[i] = NOTHING;
  DO_SMALL(Allgatherv, allgatherv, mine, counts[rank], MPI_INT, all, counts, displacements, MPI_INT, comm);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < counts[peer]; ++i) CHECK_EQ(all[displacements[peer] + i], value(peer, 1, i));
  }
  CHECK_EQ(all[total], NOTHING);
  for (int i = 0; i < counts[rank]; ++i) mine[i] = NOTHING;
  DO_SMALL(Scatterv, scatterv, all, counts, displacements, MPI_INT, mine, counts[rank], MPI_INT, size - 1, comm);
  for (int i = 0; i < counts[rank]; ++i) CHECK_EQ(mine[i], value(rank, 1, i));
  free(mine);
  free(all);
}

/* Displacements are counted from an address in the middle. */
static void negative_displacements(MPI_Comm comm, int rank, int size) {
  int counts[32], displacements[32], cells[64], mine = rank + 100;
  for (int peer = 0; peer < size; ++peer) {
    counts[peer] = 1;
    displacements[peer] = 2 * peer - size;
  }
  for (int i = 0; i < 2 * size; ++i) cells[i] = NOTHING;
  DO_SMALL(Allgatherv, allgatherv, &mine, 1, MPI_INT, cells + size, counts, displacements, MPI_INT, comm);
  for (int i = 0; i < 2 * size; ++i) CHECK_EQ(cells[i], i % 2 == 0 ? i / 2 + 100 : NOTHING);
}

static void everything(MPI_Comm comm, int rank, int size) {
  for (int pair = 0; pair < 9; ++pair) {
    const struct layout *from = &layouts[pair / 3], *to = &layouts[pair % 3];
    places(size, pair, v_.counts, v_.displacements);
    for (int place = 0; place < 2; ++place) {
      for (int root = 0; root < size; ++root) {
        gatherv(comm, rank, size, root, place, from, to);
        scatterv(comm, rank, size, root, place, from, to);
      }
      allgatherv(comm, rank, size, place, from, to);
      alltoallv(comm, rank, size, place, from, to);
    }
  }
  for (int place = 0; place < 2; ++place) alltoallw(comm, rank, size, place);
  long_parts(comm, rank, size);
  negative_displacements(comm, rank, size);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(size_ <= 32);
  v_.mine = malloc(sizeof(int) * ROOM);
  v_.all = malloc(sizeof(int) * ROOM);
  v_.expected = malloc(sizeof(int) * ROOM);
  make_layouts();
  on_all_communicators(SMALL_FORMS, everything);
  for (int i = 1; i < 3; ++i) MPI_Type_free(&layouts[i].type);
  free(v_.mine);
  free(v_.all);
  free(v_.expected);
  return finish();
}
