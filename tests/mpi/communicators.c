/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators: dup, split, create, create_group; groups; messages of one are never seen in another; ranks are
 * translated.
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

static int has(MPI_Group group, const int *ranks, int count) {
  MPI_Group world;
  int size, *own = malloc(sizeof *own * (size_t)(count + 1)), *all = malloc(sizeof *all * (size_t)(count + 1)),
            same = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(group, &size);
  for (int i = 0; i < count; ++i) own[i] = i;
  if (size == count) MPI_Group_translate_ranks(group, count, own, world, all);
  for (int i = 0; i < count && size == count; ++i) same = same && all[i] == ranks[i];
  MPI_Group_free(&world);
  free(own);
  free(all);
  return same && size == count;
}

/* Every second rank, and all others. */
static void ranges(void) {
  MPI_Group world, even, odd, part, empty;
  int up[][3] = {{0, size_ - 1, 2}}, down[][3] = {{(size_ - 1) / 2 * 2, 0, -2}}, *evens, *odds, n = 0, m = 0, result;
  evens = malloc(sizeof *evens * (size_t)size_);
  odds = malloc(sizeof *odds * (size_t)size_);
  for (int rank = 0; rank < size_; ++rank) rank % 2 == 0 ? (evens[n++] = rank) : (odds[m++] = rank);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, up, &even);
  CHECK(has(even, evens, n));
  MPI_Group_range_excl(world, 1, down, &odd);
  CHECK(has(odd, odds, m));
  CHECK((odd == MPI_GROUP_EMPTY) == (m == 0));
  MPI_Group_excl(world, n, evens, &part);
  CHECK(has(part, odds, m));
  MPI_Group_compare(part, odd, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_compare(world, even, &result);
  CHECK_EQ(result, size_ == 1 ? MPI_IDENT : MPI_UNEQUAL);
  if (part != MPI_GROUP_EMPTY) MPI_Group_free(&part);
  MPI_Group_range_incl(world, 1, down, &part);
  for (int i = 0; i < n; ++i) odds[i] = evens[n - 1 - i];
  CHECK(has(part, odds, n));
  MPI_Group_compare(part, even, &result);
  CHECK_EQ(result, n == 1 ? MPI_IDENT : MPI_SIMILAR);
  MPI_Group_free(&part);
  MPI_Group_excl(world, 0, NULL, &part);
  CHECK_EQ((MPI_Group_compare(part, world, &result), result), MPI_IDENT);
  MPI_Group_free(&part);
  MPI_Group_range_incl(world, 0, NULL, &empty);
  CHECK(empty == MPI_GROUP_EMPTY);
  if (odd != MPI_GROUP_EMPTY) MPI_Group_free(&odd);
  MPI_Group_free(&even);
  MPI_Group_free(&world);
  free(evens);
  free(odds);
}

/* The first two thirds of all ranks and the last two thirds: union, intersection and difference. */
static void sets(void) {
  const int third = size_ / 3;
  MPI_Group world, low, high, made;
  int first[][3] = {{0, size_ - third - 1, 1}}, last[][3] = {{size_ - 1, third, -1}}, *wanted, n = 0;
  wanted = malloc(sizeof *wanted * (size_t)size_);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, first, &low);
  MPI_Group_range_incl(world, 1, last, &high); /* from the last rank down */
  for (int rank = 0; rank < size_ - third; ++rank) wanted[n++] = rank;
  for (int rank = size_ - 1; rank >= size_ - third; --rank) wanted[n++] = rank;
  MPI_Group_union(low, high, &made);
  CHECK(has(made, wanted, size_));
  MPI_Group_free(&made);
  n = 0;
  for (int rank = size_ - third - 1; rank >= third; --rank) wanted[n++] = rank;
  MPI_Group_intersection(high, low, &made); /* in the order of the first group */
  CHECK(has(made, wanted, n));
  if (made != MPI_GROUP_EMPTY) MPI_Group_free(&made);
  for (int rank = 0; rank < third; ++rank) wanted[rank] = rank;
  MPI_Group_difference(low, high, &made);
  CHECK(has(made, wanted, third));
  if (made != MPI_GROUP_EMPTY) MPI_Group_free(&made);
  MPI_Group_difference(low, world, &made);
  CHECK(made == MPI_GROUP_EMPTY);
  MPI_Group_union(made, MPI_GROUP_EMPTY, &made);
  CHECK(made == MPI_GROUP_EMPTY);
  MPI_Group_free(&low);
  MPI_Group_free(&high);
  MPI_Group_free(&world);
  free(wanted);
}

#ifndef OPEN_MPI
static void wrong_groups(void) {
  MPI_Group world, part;
  MPI_Comm comm;
  const int twice[] = {0, 0}, far = size_;
  int still[][3] = {{0, 0, 0}}, beyond[][3] = {{0, size_, 1}}, again[][3] = {{0, 0, 1}, {0, 0, 1}};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Group_excl(world, 1, &far, &part)), MPI_ERR_RANK);
  if (size_ > 1) CHECK_EQ(class_of(MPI_Group_excl(world, 2, twice, &part)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Group_excl(world, -1, &far, &part)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Group_range_incl(world, 1, still, &part)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Group_range_excl(world, 1, still, &part)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Group_range_incl(world, 1, beyond, &part)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Group_range_excl(world, 1, beyond, &part)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Group_range_incl(world, 2, again, &part)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Group_range_excl(world, -1, still, &part)), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (size_ > 1) { /* a group of ranks that the communicator does not have */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Comm_create(MPI_COMM_SELF, world, &comm)), MPI_ERR_GROUP);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  }
  MPI_Group_free(&world);
}
#endif

/* All ranks call MPI_Comm_create, with one group or with several that have no rank in common. */
static void created(void) {
  MPI_Group world, part;
  MPI_Comm comm;
  int *chosen = malloc(sizeof *chosen * (size_t)size_), count = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int rank = size_ - 1; rank >= 0; --rank) {
    if (rank % 2 == rank_ % 2) chosen[count++] = rank;
  }
  MPI_Group_incl(world, count, chosen, &part);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm_create(MPI_COMM_WORLD, part, &comm);
    CHECK_EQ(size_of(comm), count);
    talk(comm, chosen);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&part);
  const int first = 0;
  MPI_Group_incl(world, 1, &first, &part);
  MPI_Comm_create(MPI_COMM_WORLD, part, &comm);
  CHECK((comm == MPI_COMM_NULL) == (rank_ != 0));
  if (rank_ == 0) MPI_Comm_free(&comm);
  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
  CHECK(comm == MPI_COMM_NULL);
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  free(chosen);
}

/* Ranks that can share memory make a shared window together. */
static void split_by_type(void) {
  MPI_Comm comm, none;
  MPI_Win window;
  int *memory, *first, unit;
  MPI_Aint size;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank_, MPI_INFO_NULL, &comm);
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
  *memory = rank_;
  MPI_Win_fence(0, window);
  MPI_Win_shared_query(window, 0, &size, &unit, &first);
  CHECK(*first >= rank_); /* the key turns the order round */
  MPI_Win_free(&window);
  const int expected = getenv("CANELE_TEST_APART") == NULL ? size_ : 1; /* run_mpi.py keeps the ranks apart */
  CHECK_EQ(size_of(comm), expected);
  CHECK_EQ(rank_in(comm), expected == 1 ? 0 : size_ - 1 - rank_);
  MPI_Comm_free(&comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, rank_ == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &none);
  CHECK((none == MPI_COMM_NULL) == (rank_ == 0));
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Comm_split_type(MPI_COMM_WORLD, -77, 0, MPI_INFO_NULL, &none)), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
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

/* Every rank counts itself before the call. So after the call, all of them have been counted. */
static void disconnected(void) {
  int *count = NULL, seen = 0;
  const int one = 1;
  MPI_Win window;
  MPI_Win_allocate(rank_ == 0 ? sizeof *count : 0, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &window);
  if (rank_ == 0) *count = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_flush(0, window);
  CHECK(MPI_Comm_disconnect(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
  MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, window);
  MPI_Win_flush(0, window);
  CHECK(seen == size_);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);

  MPI_Comm world = MPI_COMM_WORLD, parent;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(class_of(MPI_Comm_disconnect(&world)) == MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CHECK(MPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent == MPI_COMM_NULL);
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
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &bound, &flag);
  CHECK(flag && *bound == MPI_PROC_NULL);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &bound, &flag);
  CHECK(flag && *bound != MPI_PROC_NULL);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &bound, &flag);
  CHECK(flag && *bound >= MPI_ERR_LASTCODE);
#ifdef CANELE_MPI /* others know of more processors, or of none */
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &bound, &flag);
  CHECK(flag && *bound == size_);
#endif
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
  talk(copy, &rank_);
  MPI_Comm_free(&copy);
  talk(MPI_COMM_SELF, &rank_);
}

/* Duplicates without a wait, beside other creations, and duplicates of each other. */
static void idup(void) {
  enum { kCopies = 12 };
  MPI_Comm copies[kCopies], dup, chain[kCopies];
  MPI_Request requests[kCopies];
  int *const ranks = malloc(sizeof *ranks * (size_t)size_);
  for (int i = 0; i < size_; ++i) ranks[i] = i;
  for (int i = 0; i < kCopies; ++i) {
    MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &requests[i]);
    if (i == kCopies / 2) MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  }
  MPI_Waitall(kCopies, requests, MPI_STATUSES_IGNORE);
  talk(dup, ranks);
  MPI_Comm_free(&dup);
  for (int i = 0; i < kCopies; ++i) {
    int result;
    MPI_Comm_compare(MPI_COMM_WORLD, copies[i], &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    talk(copies[i], ranks);
    MPI_Comm_free(&copies[i]);
  }
  for (int round = 0; round < 2; ++round) { /* the second time, labels must be other ones */
    for (int i = 0; i < kCopies; ++i) {
      MPI_Comm_idup(i == 0 ? MPI_COMM_WORLD : chain[i - 1], &chain[i], &requests[0]);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      talk(chain[i], ranks);
    }
    for (int i = 0; i < kCopies; ++i) MPI_Comm_free(&chain[i]);
  }
  free(ranks);
}

static int has_hint(MPI_Comm comm, const char *key, const char *expected) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  MPI_Comm_get_info(comm, &info);
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
  MPI_Info_free(&info);
  return flag && strcmp(value, expected) == 0;
}

static void hints(void) {
  const char *key = "mpi_assert_no_any_tag";
  MPI_Comm comm, copy;
  MPI_Info info, none;
  int inter = 1;
  MPI_Comm_test_inter(MPI_COMM_WORLD, &inter);
  CHECK_EQ(inter, 0);
  MPI_Info_create(&info);
  MPI_Info_create(&none);
  MPI_Info_set(info, "an unknown key", "value");
  MPI_Info_set(info, key, "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
#ifdef CANELE_MPI /* an MPI may know no hint at all */
  CHECK(has_hint(MPI_COMM_WORLD, key, "false") && has_hint(comm, key, "true"));
  CHECK(!has_hint(comm, "an unknown key", "value"));
  MPI_Request request;
  MPI_Comm_dup(comm, &copy);
  CHECK(has_hint(copy, key, "true"));
  MPI_Comm_free(&copy);
  MPI_Comm_idup_with_info(comm, none, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(has_hint(copy, key, "false"));
  MPI_Comm_set_info(copy, info);
  CHECK(has_hint(copy, key, "true"));
  MPI_Comm_free(&copy);
#endif
  MPI_Comm_dup_with_info(comm, none, &copy);
  CHECK(!has_hint(copy, key, "true"));
  MPI_Comm_free(&copy);
#ifdef CANELE_MPI
  CHECK(has_hint(comm, "mpi_memory_alloc_kinds", "mpi,system"));
#endif
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
  MPI_Info_free(&none);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  isolation();
  splitting();
  groups();
  ranges();
  sets();
#ifndef OPEN_MPI /* 4.1 does not check them */
  wrong_groups();
#endif
  created();
  split_by_type();
  freed_early();
  disconnected();
  many();
  idup();
  hints();
  properties();
  return finish();
}
