/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tool interface: control variables before and after MPI_Init, performance variables in sessions, categories, and
 * what has no members. Ours only: it knows the names of settings and counters.
 *
 * Run by ctest at several numbers of ranks. One thread.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

static char name[256], text[2048];
static int value;

static void before_start(void) {
  int provided = -1;
  CHECK_EQ(MPI_T_cvar_get_num(&value), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_init_thread(-7, &provided), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
  CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
  CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
}

static void check_text(const char *given, const char *whole, int length, int room) {
  CHECK_EQ(length, (int)strlen(whole) + 1);
  CHECK_EQ((int)strlen(given), length <= room ? length - 1 : room - 1);
  CHECK(strncmp(given, whole, strlen(given)) == 0);
}

static void control_variables(void) {
  int number = 0, length, needed, verbosity, binding, scope, index;
  MPI_Datatype type;
  MPI_T_enum names;
  CHECK_EQ(MPI_T_cvar_get_num(&number), MPI_SUCCESS);
  CHECK(number > 20);
  for (int i = 0; i < number; i++) {
    char small[12];
    length = sizeof name, needed = sizeof text;
    CHECK_EQ(MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &names, text, &needed, &binding, &scope),
             MPI_SUCCESS);
    check_text(name, name, length, sizeof name);
    CHECK(strncmp(name, "CANELE_", 7) == 0 && needed > 20);
    CHECK_EQ(verbosity,
             strncmp(name + 7, "EXPERT_", 7) == 0 ? MPI_T_VERBOSITY_TUNER_DETAIL : MPI_T_VERBOSITY_USER_BASIC);
    CHECK(type == MPI_CHAR && names == MPI_T_ENUM_NULL);
    CHECK(binding == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_ALL_EQ);
    CHECK_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
    CHECK_EQ(index, i);
    length = sizeof small;
    CHECK_EQ(MPI_T_cvar_get_info(i, small, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    check_text(small, name, length, sizeof small);
    length = 0;
    CHECK_EQ(MPI_T_cvar_get_info(i, NULL, &length, NULL, NULL, NULL, text, NULL, NULL, NULL), MPI_SUCCESS);
    CHECK_EQ(length, (int)strlen(name) + 1);
  }
  CHECK_EQ(MPI_T_cvar_get_info(number, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_cvar_get_index("CANELE_NOTHING", &index), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_cvar_get_index(NULL, &index), MPI_T_ERR_INVALID);
}

/* Returns a handle of a setting. */
static MPI_T_cvar_handle control(const char *wanted) {
  MPI_T_cvar_handle handle;
  int index = -1, count = 0;
  CHECK_EQ(MPI_T_cvar_get_index(wanted, &index), MPI_SUCCESS);
  CHECK_EQ(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
  CHECK(count > 100 && count <= (int)sizeof text);
  return handle;
}

static void expect(MPI_T_cvar_handle handle, const char *expected) {
  CHECK_EQ(MPI_T_cvar_read(handle, text), MPI_SUCCESS);
  CHECK(strcmp(text, expected) == 0);
}

/* What a tool writes before MPI_Init is in force after it. */
static void settings_before_start(void) {
  const MPI_T_cvar_handle strategy = control("CANELE_STRATEGY");
  MPI_T_cvar_handle copy = strategy;
  expect(strategy, "aggregate");
  CHECK_EQ(MPI_T_cvar_write(strategy, "fifo"), MPI_SUCCESS);
  expect(strategy, "fifo");
  CHECK_EQ(MPI_T_cvar_write(strategy, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_cvar_read(strategy, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_cvar_handle_free(&copy), MPI_SUCCESS);
  CHECK(copy == MPI_T_CVAR_HANDLE_NULL);
  CHECK_EQ(MPI_T_cvar_handle_free(&copy), MPI_T_ERR_INVALID_HANDLE);
  copy = strategy;
  CHECK_EQ(MPI_T_cvar_read(strategy, text), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_cvar_handle_alloc(-1, NULL, &copy, &value), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_cvar_handle_alloc(0, NULL, NULL, &value), MPI_T_ERR_INVALID);
}

static void settings_after_start(void) {
  MPI_T_cvar_handle strategy = control("CANELE_STRATEGY");
  expect(strategy, "fifo");
  CHECK_EQ(MPI_T_cvar_write(strategy, "aggregate"), MPI_T_ERR_CVAR_SET_NOT_NOW);
  expect(strategy, "fifo");
  CHECK_EQ(MPI_T_cvar_handle_free(&strategy), MPI_SUCCESS);
}

static MPI_T_pvar_handle performance(MPI_T_pvar_session session, const char *wanted, int var_class) {
  MPI_T_pvar_handle handle;
  int index = -1, count = 0;
  CHECK_EQ(MPI_T_pvar_get_index(wanted, var_class, &index), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
  CHECK_EQ(count, 1);
  return handle;
}

static unsigned long long read_variable(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long counted = 77;
  CHECK_EQ(MPI_T_pvar_read(session, handle, &counted), MPI_SUCCESS);
  return counted;
}

static void send_around(int messages) {
  for (int i = 0; i < messages; i++) {
    int got = -1;
    MPI_Sendrecv(&rank_, 1, MPI_INT, (rank_ + 1) % size_, 1, &got, 1, MPI_INT, (rank_ + size_ - 1) % size_, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, (rank_ + size_ - 1) % size_);
  }
}

static void performance_variables(void) {
  int number = 0, states = 0;
  CHECK_EQ(MPI_T_pvar_get_num(&number), MPI_SUCCESS);
  CHECK(number > 20);
  for (int i = 0; i < number; i++) {
    int length = sizeof name, needed = sizeof text, verbosity, var_class, binding, readonly, continuous, atomic, index;
    MPI_Datatype type;
    MPI_T_enum names;
    CHECK_EQ(MPI_T_pvar_get_info(i, name, &length, &verbosity, &var_class, &type, &names, text, &needed, &binding,
                                 &readonly, &continuous, &atomic),
             MPI_SUCCESS);
    CHECK(type == MPI_UNSIGNED_LONG_LONG && names == MPI_T_ENUM_NULL && binding == MPI_T_BIND_NO_OBJECT);
    CHECK(readonly == continuous && atomic != continuous && strncmp(text, "deprecated", 10) != 0);
    CHECK_EQ(MPI_T_pvar_get_index(name, var_class, &index), MPI_SUCCESS);
    CHECK_EQ(index, i);
    CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &index), MPI_T_ERR_INVALID_NAME);
    states += continuous;
  }
  CHECK(states > 3 && states < number);
  CHECK_EQ(MPI_T_pvar_get_info(number, name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           MPI_T_ERR_INVALID_INDEX);
}

static void counters_in_sessions(MPI_T_pvar_session session, MPI_T_pvar_handle sent) {
  MPI_T_pvar_session other;
  unsigned long long counted = 5;
  CHECK_EQ(MPI_T_pvar_session_create(&other), MPI_SUCCESS);
  MPI_T_pvar_handle mine = performance(other, "messages_sent", MPI_T_PVAR_CLASS_COUNTER);
  MPI_T_pvar_handle most = performance(other, "unexpected_most", MPI_T_PVAR_CLASS_HIGHWATERMARK);
  CHECK_EQ(MPI_T_pvar_read(session, mine, &counted), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(read_variable(session, sent), 0);
  send_around(3);
  CHECK_EQ(read_variable(session, sent), 0); /* it was not started */
  CHECK_EQ(MPI_T_pvar_start(session, sent), MPI_SUCCESS);
  send_around(4);
  CHECK(read_variable(session, sent) >= 4 && read_variable(other, mine) == 0);
  CHECK_EQ(MPI_T_pvar_stop(session, sent), MPI_SUCCESS);
  const unsigned long long kept = read_variable(session, sent);
  CHECK_EQ(MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  send_around(2);
  CHECK(read_variable(session, sent) == kept && read_variable(other, mine) >= 2);
  CHECK_EQ(MPI_T_pvar_readreset(other, mine, &counted), MPI_SUCCESS);
  CHECK(counted >= 2 && read_variable(other, mine) < counted);
  counted = 1000;
  CHECK_EQ(MPI_T_pvar_write(session, sent, &counted), MPI_SUCCESS);
  CHECK_EQ(read_variable(session, sent), 1000);
  CHECK_EQ(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  CHECK_EQ(read_variable(session, sent), 0);

  (void)read_variable(other, most);
  CHECK_EQ(MPI_T_pvar_start(other, most), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_stop(other, most), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_reset(other, most), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_write(other, most, &counted), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_readreset(other, most, &counted), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_read(other, MPI_T_PVAR_ALL_HANDLES, &counted), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_pvar_read(other, mine, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_pvar_handle_alloc(other, 10000, NULL, &mine, &value), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_pvar_handle_free(session, &mine), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_pvar_handle_free(other, &mine), MPI_SUCCESS);
  CHECK(mine == MPI_T_PVAR_HANDLE_NULL);
  const MPI_T_pvar_session gone = other;
  CHECK_EQ(MPI_T_pvar_session_free(&other), MPI_SUCCESS);
  CHECK(other == MPI_T_PVAR_SESSION_NULL);
  CHECK_EQ(MPI_T_pvar_read(gone, most, &counted), MPI_T_ERR_INVALID_SESSION);
  CHECK_EQ(MPI_T_pvar_session_free(&other), MPI_T_ERR_INVALID_SESSION);
}

/* Every variable is in one category, and every category but one is in another. */
static void categories(void) {
  int number, all_cvars, all_pvars, cvars_seen = 0, pvars_seen = 0, inner_seen = 0;
  MPI_T_category_get_num(&number);
  MPI_T_cvar_get_num(&all_cvars);
  MPI_T_pvar_get_num(&all_pvars);
  char *seen = calloc((size_t)(all_cvars + all_pvars), 1);
  int *list = malloc(sizeof(int) * (size_t)(all_cvars + all_pvars));
  for (int i = 0; i < number; i++) {
    int length = sizeof name, cvars, pvars, inner, index, events = -1;
    CHECK_EQ(MPI_T_category_get_info(i, name, &length, NULL, NULL, &cvars, &pvars, &inner), MPI_SUCCESS);
    CHECK_EQ(MPI_T_category_get_index(name, &index), MPI_SUCCESS);
    CHECK_EQ(index, i);
    CHECK_EQ(MPI_T_category_get_cvars(i, cvars, list), MPI_SUCCESS);
    for (int k = 0; k < cvars; k++) CHECK(list[k] < all_cvars && !seen[list[k]]++);
    CHECK_EQ(MPI_T_category_get_pvars(i, pvars, list), MPI_SUCCESS);
    for (int k = 0; k < pvars; k++) CHECK(list[k] < all_pvars && !seen[all_cvars + list[k]]++);
    CHECK_EQ(MPI_T_category_get_categories(i, inner, list), MPI_SUCCESS);
    for (int k = 0; k < inner; k++) CHECK(list[k] > i && list[k] < number);
    CHECK_EQ(MPI_T_category_get_num_events(i, &events), MPI_SUCCESS);
    CHECK_EQ(events, 0);
    CHECK_EQ(MPI_T_category_get_events(i, 0, NULL), MPI_SUCCESS);
    cvars_seen += cvars, pvars_seen += pvars, inner_seen += inner;
  }
  CHECK(cvars_seen == all_cvars && pvars_seen == all_pvars && inner_seen == number - 1);
  CHECK_EQ(MPI_T_category_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_category_get_index("nothing", &value), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_category_get_cvars(0, 1, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_category_changed(&value), MPI_SUCCESS);
  free(seen);
  free(list);
}

static void what_has_no_members(void) {
  MPI_Count when;
  CHECK_EQ(MPI_T_event_get_num(&value), MPI_SUCCESS);
  CHECK_EQ(value, 0);
  CHECK_EQ(MPI_T_event_get_index("event", &value), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_event_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_event_handle_free(NULL, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_event_register_callback(NULL, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL),
           MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_event_get_timestamp(NULL, &when), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_source_get_num(&value), MPI_SUCCESS);
  CHECK_EQ(value, 0);
  CHECK_EQ(MPI_T_source_get_timestamp(0, &when), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &value, name, NULL), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &value, name, NULL), MPI_T_ERR_INVALID_HANDLE);
}

int main(int argc, char **argv) {
  MPI_T_pvar_session session;
  before_start();
  control_variables();
  settings_before_start();
  CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  const MPI_T_pvar_handle sent = performance(session, "messages_sent", MPI_T_PVAR_CLASS_COUNTER);
  CHECK_EQ(MPI_T_pvar_start(session, sent), MPI_SUCCESS);
  CHECK_EQ(read_variable(session, sent), 0);
  CHECK_EQ(MPI_T_pvar_stop(session, sent), MPI_SUCCESS);
  start(&argc, &argv);
  CHECK_EQ(MPI_T_pvar_reset(session, sent), MPI_SUCCESS);
  settings_after_start();
  performance_variables();
  counters_in_sessions(session, sent);
  categories();
  what_has_no_members();
  CHECK_EQ(MPI_T_pvar_start(session, sent), MPI_SUCCESS);
  send_around(2);
  const unsigned long long at_end = read_variable(session, sent);
  CHECK(at_end >= 2);
  const int code = finish();
  CHECK(read_variable(session, sent) >= at_end);
  CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_read(session, sent, text), MPI_T_ERR_NOT_INITIALIZED);
  return code;
}
