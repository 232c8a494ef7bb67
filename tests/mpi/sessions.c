/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions: without MPI_Init, before, beside and after it; several at a time; sets of processes; communicators and
 * intercommunicators of their groups; error handlers.
 */
#include "check.h"

static MPI_Session session_with(const char *level) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Info info = MPI_INFO_NULL;
  if (level != NULL) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", level);
  }
  CHECK_EQ(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
  CHECK(session != MPI_SESSION_NULL);
  if (level != NULL) MPI_Info_free(&info);
  return session;
}

static void sets(MPI_Session session) {
  int count = 0, length = 0, seen = 0, flag = 0;
  char name[MPI_MAX_PSET_NAME_LEN], value[16];
  CHECK_EQ(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count), MPI_SUCCESS);
  CHECK(count >= 2);
  for (int i = 0; i < count; ++i) {
    length = 0;
    CHECK_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL), MPI_SUCCESS);
    const int needed = length;
    CHECK(needed > 7);
    length = 5;
    memset(name, 'x', sizeof name);
    CHECK_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name), MPI_SUCCESS);
    CHECK(length == needed && strcmp(name, "mpi:") == 0 && name[5] == 'x');
    length = sizeof name;
    CHECK_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name), MPI_SUCCESS);
    CHECK(length == needed && (int)strlen(name) == needed - 1);
    seen |= strcmp(name, "mpi://WORLD") == 0 ? 1 : strcmp(name, "mpi://SELF") == 0 ? 2 : 0;
    MPI_Info info;
    CHECK_EQ(MPI_Session_get_pset_info(session, name, &info), MPI_SUCCESS);
    MPI_Info_get(info, "mpi_size", sizeof value - 1, value, &flag);
    CHECK(flag && atoi(value) >= 1);
    MPI_Info_free(&info);
  }
  CHECK_EQ(seen, 3);
  MPI_Group group;
  CHECK_EQ(class_of(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, name)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Group_from_session_pset(session, "mpi://nothing", &group)), MPI_ERR_ARG);
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag) {
  MPI_Group group;
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK_EQ(MPI_Group_from_session_pset(session, set, &group), MPI_SUCCESS);
  CHECK_EQ(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_SUCCESS);
  MPI_Group_free(&group);
  return comm;
}

/* Messages of all kinds in a communicator of all ranks. */
static void talk(MPI_Comm comm) {
  int rank, size, sum = 0, got = -1, flag = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, size * (size - 1) / 2);
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[0]);
  MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 2, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(got, (rank + size - 1) % size);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &status);
  CHECK(got == (rank + size - 1) % size && status.MPI_SOURCE == got);
  MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % size, 4, comm, &requests[0]);
  MPI_Start(&requests[0]);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Comm half;
  MPI_Comm_split(comm, rank % 2, 0, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Message message;
  MPI_Mprobe(MPI_PROC_NULL, 0, comm, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(NULL, 0, MPI_INT, &message, &requests[0]);
  MPI_Test(&requests[0], &flag, &status);
  CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Win window;
  int *part;
  CHECK_EQ(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, comm, &part, &window), MPI_SUCCESS);
  *part = -1;
  MPI_Win_fence(0, window);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(*part, (rank + size - 1) % size);
  MPI_Win_free(&window);
}

static int query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
static int nothing(void *state) { return state != NULL; }
static int not_cancelled(void *state, int complete) { return state != NULL && complete; }

/* Objects that belong to no communicator work without MPI_COMM_WORLD. */
static void objects(void) {
  MPI_Request request;
  MPI_Grequest_start(query, nothing, not_cancelled, NULL, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void one_session(const char *level) {
  MPI_Session session = session_with(level);
  MPI_Info info;
  char value[64] = "";
  int flag = 0;
  CHECK_EQ(MPI_Session_get_info(session, &info), MPI_SUCCESS);
  MPI_Info_get(info, "thread_level", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, level == NULL ? "MPI_THREAD_MULTIPLE" : level) == 0);
  MPI_Info_free(&info);
  sets(session);
  MPI_Comm all = comm_of(session, "mpi://WORLD", "all"), self = comm_of(session, "mpi://SELF", "self");
  int size;
  MPI_Comm_size(self, &size);
  CHECK_EQ(size, 1);
  talk(all);
  talk(self);
  objects();
  MPI_Comm_free(&all);
  MPI_Comm_free(&self);
  CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
  CHECK(session == MPI_SESSION_NULL);
}

/* Two sessions, whose communicators have one tag and one group, and are used in turn. */
static void two_sessions(void) {
  MPI_Session first = session_with(NULL), second = session_with("MPI_THREAD_SINGLE");
  CHECK(first != second);
  MPI_Comm a = comm_of(first, "mpi://WORLD", "tag"), b = comm_of(second, "mpi://WORLD", "tag");
  int rank, size, result, x = 1, y = 2, got_x = 0, got_y = 0;
  MPI_Comm_rank(a, &rank);
  MPI_Comm_size(a, &size);
  MPI_Comm_compare(a, b, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Request requests[2];
  MPI_Isend(&x, 1, MPI_INT, (rank + 1) % size, 0, a, &requests[0]);
  MPI_Isend(&y, 1, MPI_INT, (rank + 1) % size, 0, b, &requests[1]);
  MPI_Recv(&got_y, 1, MPI_INT, MPI_ANY_SOURCE, 0, b, MPI_STATUS_IGNORE);
  MPI_Recv(&got_x, 1, MPI_INT, MPI_ANY_SOURCE, 0, a, MPI_STATUS_IGNORE);
  CHECK(got_x == x && got_y == y);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&a);
  CHECK_EQ(MPI_Session_finalize(&first), MPI_SUCCESS);
  talk(b); /* goes on without the other session */
  MPI_Comm_free(&b);
  CHECK_EQ(MPI_Session_finalize(&second), MPI_SUCCESS);
}

/* The even and the odd ranks, from groups only. */
static void between_groups(void) {
  MPI_Session session = session_with(NULL);
  MPI_Group world, own, other;
  int rank, size, got = -1;
  CHECK_EQ(MPI_Group_from_session_pset(session, "mpi://WORLD", &world), MPI_SUCCESS);
  MPI_Group_rank(world, &rank);
  MPI_Group_size(world, &size);
  if (size > 1) {
    int even[1][3] = {{0, (size - 1) / 2 * 2, 2}}, odd[1][3] = {{1, size / 2 * 2 - 1, 2}};
    MPI_Group_range_incl(world, 1, rank % 2 == 0 ? even : odd, &own);
    MPI_Group_range_incl(world, 1, rank % 2 == 0 ? odd : even, &other);
    MPI_Comm inter, part;
    CHECK_EQ(MPI_Intercomm_create_from_groups(own, 0, rank < 2 ? other : MPI_GROUP_NULL, 0, "between", MPI_INFO_NULL,
                                              MPI_ERRORS_RETURN, &inter),
             MPI_SUCCESS);
    int remote_size, sum = 0, expected = 0;
    MPI_Comm_remote_size(inter, &remote_size);
    CHECK_EQ(remote_size, rank % 2 == 0 ? size / 2 : (size + 1) / 2);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int i = 1 - rank % 2; i < size; i += 2) expected += i;
    CHECK_EQ(sum, expected);
    if (rank < 2) {
      MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
      CHECK_EQ(got, 1 - rank);
    }
    CHECK_EQ(MPI_Comm_create_from_group(own, "part", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part), MPI_SUCCESS);
    talk(part);
    MPI_Comm_free(&part);
    CHECK_EQ(class_of(MPI_Comm_create_from_group(other, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part)), MPI_ERR_GROUP);
    CHECK_EQ(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part), MPI_SUCCESS);
    CHECK(part == MPI_COMM_NULL);
    /* A wrong leader: the ranks of the group hear of it. */
    CHECK_EQ(class_of(MPI_Intercomm_create_from_groups(own, 0, other, size, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                                       &part)),
             MPI_ERR_RANK);
    MPI_Group_free(&own);
    MPI_Group_free(&other);
    MPI_Comm_free(&inter);
  }
  MPI_Group_free(&world);
  CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
}

static int reports, last_code;
static MPI_Session last_session;
static void on_error(MPI_Session *session, int *code, ...) {
  ++reports;
  last_code = *code;
  last_session = *session;
}

static void error_handlers(void) {
  MPI_Errhandler handler, got;
  MPI_Session session;
  int length = 0;
  reports = 0;
  CHECK_EQ(MPI_Session_create_errhandler(on_error, &handler), MPI_SUCCESS); /* may come before all else */
  CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, handler, &session), MPI_SUCCESS);
  MPI_Session_get_errhandler(session, &got);
  CHECK(got == handler);
  MPI_Errhandler_free(&got);
  CHECK_EQ(class_of(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL)), MPI_ERR_ARG);
  CHECK(reports == 1 && class_of(last_code) == MPI_ERR_ARG && last_session == session);
  MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
  CHECK(reports == 2 && last_code == MPI_ERR_OTHER);
  MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
  MPI_Session_get_errhandler(session, &got);
  CHECK(got == MPI_ERRORS_RETURN);
  CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL) != MPI_SUCCESS);
  CHECK_EQ(reports, 2);
  MPI_Errhandler_free(&handler);
  MPI_Session made;
  CHECK_EQ(class_of(MPI_Session_init((MPI_Info)MPI_INFO_ENV, MPI_ERRHANDLER_NULL, &made)), MPI_ERR_ARG);
  CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
}

int main(int argc, char **argv) {
  /* Before MPI_Init: the engine starts and ends with each of these. */
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; ++i) {
    one_session(NULL);
    one_session("MPI_THREAD_FUNNELED");
    two_sessions();
    between_groups();
    error_handlers();
  }
  /* Beside MPI_Init. */
  MPI_Session outer = session_with(NULL);
  MPI_Comm all = comm_of(outer, "mpi://WORLD", "outer");
  start(&argc, &argv);
  talk(MPI_COMM_WORLD);
  one_session(NULL);
  two_sessions();
  between_groups();
  talk(all);
  int finalized = 1, initialized = 0;
  MPI_Finalized(&finalized);
  CHECK_EQ(finalized, 0);
  MPI_Finalize();
  MPI_Finalized(&finalized);
  MPI_Initialized(&initialized);
  CHECK(finalized && initialized);
  /* After MPI_Finalize: the session that is still open, and new ones. */
  talk(all);
  int size = 0;
  MPI_Session inner = session_with(NULL);
  talk(all);
  CHECK_EQ(MPI_Session_finalize(&inner), MPI_SUCCESS);
  MPI_Comm_size(all, &size);
  MPI_Comm_free(&all);
  CHECK_EQ(MPI_Session_finalize(&outer), MPI_SUCCESS);
  one_session(NULL);
  return 0;
}
