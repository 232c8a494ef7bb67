/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives that are started and left: many in progress at a time on several communicators. They are completed in any
 * order and by every function that completes requests. Types, operators and communicators are freed meanwhile. A
 * barrier waits for the last rank.
 *
 * Ranks complete in different orders, so a collective that needed another rank's MPI_Wait to proceed would hang here.
 */
#include "both.h"

enum { FORMS = 17, COUNT = 40, RANKS = 8, CELLS = COUNT * RANKS };

/* One collective in progress; every form has the same memory. */
struct slot {
  int form, root, salt;
  MPI_Comm comm;
  int rank, size;
  int in[CELLS], out[CELLS], counts[RANKS], places[RANKS];
  MPI_Datatype types[RANKS];
};

static int value(const struct slot *s, int from, int i) { return from * 1000 + i + s->salt * 7; }

/* Returns the sum over ranks 0 to last. */
static int sum(const struct slot *s, int last, int i) {
  int total = 0;
  for (int peer = 0; peer <= last; ++peer) total += value(s, peer, i);
  return total;
}

static void prepare(struct slot *s, int form, MPI_Comm comm, int salt) {
  MPI_Comm_rank(comm, &s->rank);
  MPI_Comm_size(comm, &s->size);
  s->form = form;
  s->comm = comm;
  s->salt = salt;
  s->root = salt % s->size;
  for (int i = 0; i < CELLS; ++i) {
    s->in[i] = value(s, s->rank, i);
    s->out[i] = -1;
  }
  for (int peer = 0; peer < RANKS; ++peer) {
    s->counts[peer] = COUNT;
    s->places[peer] = peer * COUNT;
    s->types[peer] = MPI_INT;
  }
}

static void start_data(struct slot *s, MPI_Request *request) {
  switch (s->form) {
    case 0:
      MPI_Ibarrier(s->comm, request);
      break;
    case 1:
      MPI_Ibcast(s->rank == s->root ? s->in : s->out, COUNT, MPI_INT, s->root, s->comm, request);
      break;
    case 2:
      MPI_Igather(s->in, COUNT, MPI_INT, s->out, COUNT, MPI_INT, s->root, s->comm, request);
      break;
    case 3:
      MPI_Igatherv(s->in, COUNT, MPI_INT, s->out, s->counts, s->places, MPI_INT, s->root, s->comm, request);
      break;
    case 4:
      MPI_Iscatter(s->in, COUNT, MPI_INT, s->out, COUNT, MPI_INT, s->root, s->comm, request);
      break;
    case 5:
      MPI_Iscatterv(s->in, s->counts, s->places, MPI_INT, s->out, COUNT, MPI_INT, s->root, s->comm, request);
      break;
    case 6:
      MPI_Iallgather(s->in, COUNT, MPI_INT, s->out, COUNT, MPI_INT, s->comm, request);
      break;
    case 7:
      MPI_Iallgatherv(s->in, COUNT, MPI_INT, s->out, s->counts, s->places, MPI_INT, s->comm, request);
      break;
    case 8:
      MPI_Ialltoall(s->in, COUNT, MPI_INT, s->out, COUNT, MPI_INT, s->comm, request);
      break;
    case 9:
      MPI_Ialltoallv(s->in, s->counts, s->places, MPI_INT, s->out, s->counts, s->places, MPI_INT, s->comm, request);
      break;
    default:
      for (int peer = 0; peer < RANKS; ++peer) s->places[peer] = peer * COUNT * (int)sizeof(int);
      MPI_Ialltoallw(s->in, s->counts, s->places, s->types, s->out, s->counts, s->places, s->types, s->comm, request);
  }
}

static void start_reduction(struct slot *s, MPI_Request *request) {
  switch (s->form) {
    case 11:
      MPI_Ireduce(s->in, s->out, COUNT, MPI_INT, MPI_SUM, s->root, s->comm, request);
      break;
    case 12:
      MPI_Iallreduce(s->in, s->out, COUNT, MPI_INT, MPI_SUM, s->comm, request);
      break;
    case 13:
      MPI_Ireduce_scatter(s->in, s->out, s->counts, MPI_INT, MPI_SUM, s->comm, request);
      break;
    case 14:
      MPI_Ireduce_scatter_block(s->in, s->out, COUNT, MPI_INT, MPI_SUM, s->comm, request);
      break;
    case 15:
      MPI_Iscan(s->in, s->out, COUNT, MPI_INT, MPI_SUM, s->comm, request);
      break;
    default:
      MPI_Iexscan(s->in, s->out, COUNT, MPI_INT, MPI_SUM, s->comm, request);
  }
}

static void begin(struct slot *s, int form, MPI_Comm comm, int salt, MPI_Request *request) {
  prepare(s, form, comm, salt);
  if (form < 11) {
    start_data(s, request);
  } else {
    start_reduction(s, request);
  }
  CHECK(*request != MPI_REQUEST_NULL);
}

/* Returns the expected cell i of the result; -1: not written. */
static int expected(const struct slot *s, int i) {
  const int from = i / COUNT, at_root = s->rank == s->root, first = i < COUNT, inside = from < s->size;
  switch (s->form) {
    case 0:
      return -1;
    case 1:
      return !at_root && first ? value(s, s->root, i) : -1;
    case 2:
    case 3:
      return at_root && inside ? value(s, from, i % COUNT) : -1;
    case 4:
    case 5:
      return first ? value(s, s->root, s->rank * COUNT + i) : -1;
    case 6:
    case 7:
      return inside ? value(s, from, i % COUNT) : -1;
    case 8:
    case 9:
    case 10:
      return inside ? value(s, from, s->rank * COUNT + i % COUNT) : -1;
    case 11:
      return at_root && first ? sum(s, s->size - 1, i) : -1;
    case 12:
      return first ? sum(s, s->size - 1, i) : -1;
    case 13:
    case 14:
      return first ? sum(s, s->size - 1, s->rank * COUNT + i) : -1;
    case 15:
      return first ? sum(s, s->rank, i) : -1;
    default:
      return first && s->rank > 0 ? sum(s, s->rank - 1, i) : -1;
  }
}

static void check_slot(const struct slot *s) {
  for (int i = 0; i < CELLS; ++i) {
    if (s->out[i] != expected(s, i)) fprintf(stderr, "form %d, root %d, cell %d\n", s->form, s->root, i);
    CHECK_EQ(s->out[i], expected(s, i));
  }
}

/* ------------------------------------------------------------------------------------- completion in any order */

/* Completes all requests in one of six ways. */
static void complete_all(MPI_Request *requests, int count, int way) {
  int done, index, flag = 0, *indices = malloc(sizeof *indices * (size_t)count);
  MPI_Status *statuses = malloc(sizeof *statuses * (size_t)count);
  if (way == 0) {
    for (int i = count - 1; i >= 0; --i) complete(&requests[i]);
  } else if (way == 1) {
    for (int i = 0; i < count; ++i) complete(&requests[(i * 7 + rank_) % count]); /* count is no multiple of 7 */
  } else if (way == 2) {
    CHECK_EQ(MPI_Waitall(count, requests, statuses), MPI_SUCCESS);
  } else if (way == 3) {
    while (!flag) {
      MPI_Testall(count, requests, &flag, statuses);
      sched_yield();
    }
  } else if (way == 4) {
    for (int i = 0; i < count; ++i) {
      MPI_Waitany(count, requests, &index, statuses);
      CHECK(index >= 0 && index < count && requests[index] == MPI_REQUEST_NULL);
    }
  } else {
    for (int left = count; left > 0; left -= done) {
      MPI_Waitsome(count, requests, &done, indices, statuses);
      CHECK(done >= 1 && done <= left);
    }
  }
  for (int i = 0; i < count; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
  free(statuses);
  free(indices);
}

static void all_at_once(MPI_Comm first, MPI_Comm second) {
  enum { SLOTS = 2 * FORMS };
  struct slot *slots = malloc(sizeof *slots * SLOTS);
  MPI_Request requests[SLOTS];
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < SLOTS; ++i) {
      begin(&slots[i], i / 2, i % 2 == 0 ? first : second, i + round, &requests[i]);
    }
    complete_all(requests, SLOTS, (round + rank_) % 6);
    for (int i = 0; i < SLOTS; ++i) check_slot(&slots[i]);
  }
  free(slots);
}

/* Collectives beside messages, and null requests. */
static void beside_messages(void) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  int got = -1, total = 0;
  MPI_Request requests[5];
  MPI_Status statuses[5];
  MPI_Irecv(&got, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&rank_, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  requests[2] = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
  MPI_Isend(&rank_, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[4]);
  MPI_Waitall(5, requests, statuses);
  CHECK_EQ(got, before);
  CHECK_EQ(total, size_ * (size_ - 1) / 2);
  CHECK_EQ(statuses[0].MPI_SOURCE, before);
#ifdef CANELE_MPI
  CHECK_EQ(statuses[1].MPI_SOURCE, MPI_ANY_SOURCE);
  CHECK_EQ(statuses[1].MPI_TAG, MPI_ANY_TAG);
#endif
}

/* ------------------------------------------------------------------------------------------------ freed meanwhile */

static void add_pairs(void *in, void *inout, int *count, MPI_Datatype *type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    int *b = (int *)(void *)((char *)inout + i * extent);
    const int *a = (const int *)(const void *)((const char *)in + i * extent);
    b[0] += a[0];
    b[2] += a[2];
  }
}

/* Cells 0 and 2 of every four. */
static MPI_Datatype spaced_pair(void) {
  MPI_Datatype pair, type;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&pair);
  return type;
}

static void freed_early(void) {
  int in[16], sums[16], all[RANKS * 16], values[16];
  for (int i = 0; i < 16; ++i) {
    in[i] = rank_ * 50 + i;
    sums[i] = -1;
    values[i] = rank_ == 0 ? i : -1;
  }
  for (int i = 0; i < RANKS * 16; ++i) all[i] = -1;
  MPI_Comm copy;
  MPI_Op op;
  MPI_Request requests[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Datatype type = spaced_pair();
  MPI_Op_create(add_pairs, 0, &op);
  MPI_Iallreduce(in, sums, 4, type, op, copy, &requests[0]);
  MPI_Iallgather(in, 4, type, all, 4, type, copy, &requests[1]);
  MPI_Ibcast(values, 4, type, 0, copy, &requests[2]);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
#ifdef CANELE_MPI /* Open MPI 4.1 crashes in collectives in progress on the communicator */
  MPI_Comm_free(&copy);
#endif
  MPI_Datatype other = spaced_pair(); /* would reuse the first one's memory if that were free */
  MPI_Type_free(&other);
  for (int i = 2; i >= 0; --i) complete(&requests[i]);
#ifndef CANELE_MPI
  MPI_Comm_free(&copy);
#endif
  for (int i = 0; i < 16; ++i) {
    const int there = i % 2 == 0;
    CHECK_EQ(sums[i], there ? 50 * size_ * (size_ - 1) / 2 + size_ * i : -1);
    CHECK_EQ(values[i], there || rank_ == 0 ? i : -1);
  }
  for (int i = 0; i < size_ * 16; ++i) CHECK_EQ(all[i], i % 2 == 0 ? i / 16 * 50 + i % 16 : -1);
}

/* --------------------------------------------------------------------------------------------------- the last one */

/* No rank leaves a barrier before rank 0 has entered it. Rank 0 enters only after all others have been checked. */
static void last_one(void) {
  MPI_Request request;
  int flag = 0, told = 0;
  if (rank_ == 0) {
    for (int peer = 1; peer < size_; ++peer) {
      MPI_Recv(&told, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
  } else {
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int i = 0; i < 200; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    MPI_Send(&rank_, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
}

/* Communicators are made while collectives of their parent are in progress. */
static void made_meanwhile(void) {
  MPI_Request request;
  MPI_Comm copy, half;
  int total = -1;
  MPI_Iallreduce(&size_, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, 0, &half);
  all_at_once(copy, half);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  complete(&request);
  CHECK_EQ(total, size_ * size_);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(size_ <= RANKS);
  form_ = 1;
  all_at_once(MPI_COMM_WORLD, MPI_COMM_SELF);
  made_meanwhile();
  beside_messages();
  for (int round = 0; round < 20; ++round) freed_early();
  for (int round = 0; round < 5; ++round) last_one();
  return finish();
}
