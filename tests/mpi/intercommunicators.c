/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Intercommunicators: their groups; messages in all modes, whose ranks are those of the remote group; duplicates,
 * splits, merges; what is an error on them.
 */
#include "inter.h"

/* Checks both groups of an intercommunicator. */
static void has_groups(MPI_Comm inter, const struct sides *sides) {
  int flag = 0, size, rank, result;
  MPI_Comm_test_inter(inter, &flag);
  CHECK_EQ(flag, 1);
  MPI_Comm_rank(inter, &rank);
  CHECK_EQ(rank, sides->rank);
  MPI_Comm_size(inter, &size);
  CHECK_EQ(size, sides->size);
  MPI_Comm_remote_size(inter, &size);
  CHECK_EQ(size, sides->remote_size);
  MPI_Group world, group, expected;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(inter, &group);
  MPI_Group_incl(world, sides->size, sides->ranks, &expected);
  MPI_Group_compare(group, expected, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&expected);
  MPI_Comm_remote_group(inter, &group);
  MPI_Group_incl(world, sides->remote_size, sides->remote, &expected);
  MPI_Group_compare(group, expected, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&expected);
  MPI_Group_free(&world);
}

/* Sends the world rank to each rank of the other group; receives from any. */
static void talk(MPI_Comm inter, const struct sides *sides) {
  for (int peer = 0; peer < sides->remote_size; ++peer) {
    MPI_Request request;
    MPI_Isend(&rank_, 1, MPI_INT, peer, 3 + sides->rank, inter, &request);
    MPI_Request_free(&request);
  }
  int seen = 0;
  for (int i = 0; i < sides->remote_size; ++i) {
    int world = -1;
    MPI_Status status;
    MPI_Recv(&world, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status);
    CHECK(status.MPI_SOURCE >= 0 && status.MPI_SOURCE < sides->remote_size);
    CHECK_EQ(world, sides->remote[status.MPI_SOURCE]);
    CHECK_EQ(status.MPI_TAG, 3 + status.MPI_SOURCE);
    seen |= 1 << status.MPI_SOURCE;
  }
  CHECK_EQ(seen, (1 << sides->remote_size) - 1);
  MPI_Barrier(inter);
}

/* Messages between the ranks of equal number, in each mode. */
static void modes(MPI_Comm inter, const struct sides *sides) {
  const int pairs = sides->size < sides->remote_size ? sides->size : sides->remote_size;
  const int peer = sides->rank < pairs ? sides->rank : MPI_PROC_NULL;
  int got = -1, flag = 0;
  MPI_Status status;
  MPI_Sendrecv(&rank_, 1, MPI_INT, peer, 1, &got, 1, MPI_INT, peer, 1, inter, &status);
  CHECK_EQ(status.MPI_SOURCE, peer);
  if (peer == MPI_PROC_NULL) return;
  const int expected = sides->remote[peer];
  CHECK_EQ(got, expected);
  got = rank_;
  MPI_Sendrecv_replace(&got, 1, MPI_INT, peer, 2, peer, 2, inter, &status);
  CHECK_EQ(got, expected);
  MPI_Request requests[2];
  got = -1;
  MPI_Isendrecv(&rank_, 1, MPI_INT, peer, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &requests[0]);
  MPI_Wait(&requests[0], &status);
  CHECK(got == expected && status.MPI_SOURCE == peer);

  MPI_Issend(&rank_, 1, MPI_INT, peer, 4, inter, &requests[0]);
  MPI_Probe(MPI_ANY_SOURCE, 4, inter, &status);
  CHECK_EQ(status.MPI_SOURCE, peer);
  MPI_Iprobe(peer, MPI_ANY_TAG, inter, &flag, &status);
  CHECK(flag && status.MPI_SOURCE == peer && status.MPI_TAG == 4);
  MPI_Message message;
  MPI_Mprobe(peer, 4, inter, &message, &status);
  CHECK_EQ(status.MPI_SOURCE, peer);
  got = -1;
  MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
  CHECK(got == expected && status.MPI_SOURCE == peer);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

  MPI_Send_init(&rank_, 1, MPI_INT, peer, 5, inter, &requests[0]);
  MPI_Recv_init(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Status statuses[2];
    got = -1;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    CHECK(got == expected && statuses[1].MPI_SOURCE == peer);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);

  char room[MPI_BSEND_OVERHEAD + sizeof(int)];
  void *memory;
  int size;
  MPI_Buffer_attach(room, sizeof room);
  MPI_Bsend(&rank_, 1, MPI_INT, peer, 6, inter);
  MPI_Recv(&got, 1, MPI_INT, peer, 6, inter, MPI_STATUS_IGNORE);
  CHECK_EQ(got, expected);
  MPI_Buffer_detach(&memory, &size);
}

static int copies;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag) {
  (void)comm, (void)keyval, (void)extra;
  ++copies;
  *(void **)copy = value;
  *flag = 1;
  return MPI_SUCCESS;
}

static void duplicates(const struct sides *sides) {
  int keyval, result, length, flag;
  char name[MPI_MAX_OBJECT_NAME];
  void *value;
  MPI_Comm copy = MPI_COMM_NULL, later = MPI_COMM_NULL, hinted = MPI_COMM_NULL;
  MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(sides->inter, keyval, &keyval);
  MPI_Comm_set_name(sides->inter, "between");
  MPI_Comm_get_name(sides->inter, name, &length);
  CHECK(strcmp(name, "between") == 0);
  copies = 0;
  CHECK_EQ(MPI_Comm_dup(sides->inter, &copy), MPI_SUCCESS);
  MPI_Request request;
  CHECK_EQ(MPI_Comm_idup(sides->inter, &later, &request), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &hinted), MPI_SUCCESS);
  CHECK_EQ(copies, 3);
  MPI_Comm_get_attr(hinted, keyval, &value, &flag);
  CHECK(flag && value == &keyval);
  has_groups(copy, sides);
  has_groups(later, sides);
  has_groups(hinted, sides);
  MPI_Comm_compare(copy, later, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm_compare(copy, copy, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
  CHECK_EQ(result, MPI_UNEQUAL);
  MPI_Comm_compare(sides->own, copy, &result);
  CHECK_EQ(result, MPI_UNEQUAL);

  /* What is sent first in one is received last from the other. */
  int first = 1, second = 2, a = 0, b = 0;
  const int target = sides->rank % sides->remote_size;
  MPI_Request requests[2];
  if (sides->rank < sides->remote_size) {
    MPI_Isend(&first, 1, MPI_INT, target, 90, copy, &requests[0]);
    MPI_Isend(&second, 1, MPI_INT, target, 90, later, &requests[1]);
    if (sides->rank < sides->size) {
      MPI_Recv(&b, 1, MPI_INT, sides->rank, MPI_ANY_TAG, later, MPI_STATUS_IGNORE);
      MPI_Recv(&a, 1, MPI_INT, MPI_ANY_SOURCE, 90, copy, MPI_STATUS_IGNORE);
      CHECK(a == 1 && b == 2);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  talk(copy, sides);
  talk(hinted, sides);
  MPI_Comm_free(&later);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&hinted);
  MPI_Comm_delete_attr(sides->inter, keyval);
  MPI_Comm_free_keyval(&keyval);
}

/* Merges, and checks the order of the ranks. */
static void merged(const struct sides *sides, int high, int upper_last) {
  MPI_Comm all;
  int rank, size, flag, sum = 0;
  CHECK_EQ(MPI_Intercomm_merge(sides->inter, high, &all), MPI_SUCCESS);
  MPI_Comm_test_inter(all, &flag);
  CHECK_EQ(flag, 0);
  MPI_Comm_size(all, &size);
  CHECK_EQ(size, size_);
  MPI_Comm_rank(all, &rank);
  if (upper_last >= 0) {
    const int last = sides->upper == upper_last;
    CHECK_EQ(rank, sides->rank + (last ? sides->remote_size : 0));
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK_EQ(sum, size_ * (size_ - 1) / 2);
  MPI_Comm_free(&all);
}

/* Intercommunicators made of parts of both groups. */
static void parts(const struct sides *sides) {
  MPI_Comm part;
  int size, rank;
  /* Even and odd ranks, in reverse order. A color that one group lacks makes none. */
  CHECK_EQ(MPI_Comm_split(sides->inter, sides->rank % 2, -sides->rank, &part), MPI_SUCCESS);
  const int own = (sides->size + 1 - sides->rank % 2) / 2, remote = (sides->remote_size + 1 - sides->rank % 2) / 2;
  if (remote == 0) {
    CHECK(part == MPI_COMM_NULL);
  } else {
    struct sides expected = {.rank = own - 1 - sides->rank / 2, .size = own, .remote_size = remote};
    for (int i = 0; i < own; ++i) expected.ranks[own - 1 - i] = sides->ranks[2 * i + sides->rank % 2];
    for (int i = 0; i < remote; ++i) expected.remote[remote - 1 - i] = sides->remote[2 * i + sides->rank % 2];
    has_groups(part, &expected);
    talk(part, &expected);
    MPI_Comm_free(&part);
  }
  MPI_Comm_split(sides->inter, sides->rank == 0 ? 4 : MPI_UNDEFINED, 0, &part);
  CHECK_EQ(part == MPI_COMM_NULL, sides->rank != 0);
  if (part != MPI_COMM_NULL) {
    MPI_Comm_remote_size(part, &size);
    CHECK_EQ(size, 1);
    MPI_Comm_free(&part);
  }
  /* The last rank of each group. */
  MPI_Group group, last;
  MPI_Comm_group(sides->inter, &group);
  const int chosen = sides->size - 1;
  MPI_Group_incl(group, 1, &chosen, &last);
  CHECK_EQ(MPI_Comm_create(sides->inter, last, &part), MPI_SUCCESS);
  CHECK_EQ(part == MPI_COMM_NULL, sides->rank != chosen);
  if (part != MPI_COMM_NULL) {
    const struct sides expected = {
        .size = 1, .remote_size = 1, .ranks = {rank_}, .remote = {sides->remote[sides->remote_size - 1]}};
    has_groups(part, &expected);
    talk(part, &expected);
    MPI_Comm_free(&part);
  }
  /* One group is empty: there is no intercommunicator. */
  CHECK_EQ(MPI_Comm_create(sides->inter, sides->upper ? MPI_GROUP_EMPTY : group, &part), MPI_SUCCESS);
  CHECK(part == MPI_COMM_NULL);
  MPI_Group_free(&group);
  MPI_Group_free(&last);
  MPI_Comm_rank(sides->inter, &rank);
  CHECK_EQ(rank, sides->rank);
}

static int reported;

static void count_report(MPI_Comm *comm, int *code, ...) {
  int flag = 0;
  MPI_Comm_test_inter(*comm, &flag);
  reported += flag + *code * 0;
}

/* What is erroneous on an intercommunicator, or on an intracommunicator. */
static void wrong(const struct sides *sides) {
  MPI_Comm inter, made;
  MPI_Errhandler handler;
  int value = 1, out = 0, size, ones[16], dims = 1, no = 0;
  MPI_Group group;
  MPI_Win window;
  for (int i = 0; i < 16; ++i) ones[i] = 1;
  MPI_Comm_create_errhandler(count_report, &handler);
  MPI_Comm_set_errhandler(sides->inter, handler);
  MPI_Comm_dup(sides->inter, &inter);
  MPI_Comm_group(inter, &group);
  int calls = 0;
#define CHECK_CLASS(code, error)     \
  do {                               \
    ++calls;                         \
    CHECK_EQ(class_of(code), error); \
    CHECK_EQ(reported, calls);       \
  } while (0)
  reported = 0;
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, sides->remote_size, 0, inter), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, -7, 0, inter, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Scan(&value, &out, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Exscan(&value, &out, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_create_group(inter, group, 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Cart_create(inter, 1, &dims, &no, 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Graph_create(inter, 1, &no, &no, 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(
      MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made),
      MPI_ERR_COMM);
  CHECK_CLASS(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, inter, &window), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Bcast(&value, 1, MPI_INT, sides->remote_size, inter), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Reduce(&value, &out, 1, MPI_INT, MPI_SUM, -9, inter), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, ones, 1, MPI_INT, inter), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoallv(ones, NULL, ones, MPI_INT, ones, ones, ones, MPI_INT, inter), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Reduce_scatter(ones, &out, NULL, MPI_INT, MPI_SUM, inter), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Comm_remote_size(MPI_COMM_WORLD, &size)), MPI_ERR_COMM);
  CHECK_EQ(class_of(MPI_Comm_remote_group(MPI_COMM_WORLD, &group)), MPI_ERR_COMM);
  CHECK_EQ(class_of(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &made)), MPI_ERR_COMM);
  /* The leaders' arguments: all ranks of the group hear of it. */
  MPI_Comm_set_errhandler(sides->own, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Intercomm_create(sides->own, 0, MPI_COMM_WORLD, size_, 0, &made)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Intercomm_create(sides->own, 0, MPI_COMM_NULL, 0, 0, &made)), MPI_ERR_COMM);
  CHECK_EQ(class_of(MPI_Intercomm_create(sides->own, sides->size, MPI_COMM_WORLD, 0, 0, &made)), MPI_ERR_RANK);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(sides->inter, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&inter);
}

/* Both leaders are one process. */
static void no_other_leader(void) {
  MPI_Comm pair, made;
  MPI_Comm_split(MPI_COMM_WORLD, rank_ / 2, 0, &pair);
  MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Intercomm_create(pair, 0, MPI_COMM_WORLD, rank_ / 2 * 2, 0, &made)), MPI_ERR_RANK);
  MPI_Comm_free(&pair);
}

/* The intercommunicator is freed while messages and a collective are in progress. */
static void freed_in_use(int kind) {
  struct sides sides = make_sides(kind);
  MPI_Request requests[3];
  int got[2] = {-1, -1};
  const int peer = sides.rank < sides.remote_size ? sides.rank : MPI_PROC_NULL;
  MPI_Irecv(&got[0], 1, MPI_INT, peer, 9, sides.inter, &requests[0]);
  MPI_Iallreduce(&rank_, &got[1], 1, MPI_INT, MPI_SUM, sides.inter, &requests[1]);
  MPI_Isend(&rank_, 1, MPI_INT, peer, 9, sides.inter, &requests[2]);
  free_sides(&sides);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  int sum = 0;
  for (int i = 0; i < sides.remote_size; ++i) sum += sides.remote[i];
  CHECK_EQ(got[1], sum);
  if (peer != MPI_PROC_NULL) CHECK_EQ(got[0], sides.remote[peer]);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int flag = 1;
  MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
  CHECK_EQ(flag, 0);
  no_other_leader();
  for (int kind = 0; kind < KINDS && size_ > 1; ++kind) {
    struct sides sides = make_sides(kind);
    has_groups(sides.inter, &sides);
    talk(sides.inter, &sides);
    modes(sides.inter, &sides);
    duplicates(&sides);
    merged(&sides, sides.upper, 1);
    merged(&sides, !sides.upper, 0);
    merged(&sides, 0, -1);
    merged(&sides, 1, -1);
    parts(&sides);
    wrong(&sides);
    MPI_Barrier(sides.inter);
    free_sides(&sides);
    freed_in_use(kind);
  }
  return finish();
}
