/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows as objects: creation and end, attributes, names, groups, infos, error handlers, and what their calls reject.
 */
#include <stdint.h>

#include "check.h"

/* ---- infos */

static void set_and_get(void) {
  MPI_Info info, copy;
  char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY];
  int flag = 7, length = 7, count = 7;
  MPI_Info_create(&info);
  CHECK(info != MPI_INFO_NULL);
  MPI_Info_get_nkeys(info, &count);
  CHECK_EQ(count, 0);
  MPI_Info_set(info, "first", "one");
  MPI_Info_set(info, "second", "two");
  MPI_Info_set(info, "first", "three");
  MPI_Info_get_nkeys(info, &count);
  CHECK_EQ(count, 2);
  MPI_Info_get(info, "first", MPI_MAX_INFO_VAL, value, &flag);
  CHECK(flag && strcmp(value, "three") == 0);
  MPI_Info_get(info, "first", 2, value, &flag);
  CHECK(flag && strcmp(value, "th") == 0);
  MPI_Info_get_valuelen(info, "first", &length, &flag);
  CHECK(flag && length == 5);
  MPI_Info_get(info, "third", MPI_MAX_INFO_VAL, value, &flag);
  CHECK_EQ(flag, 0);
  MPI_Info_get_valuelen(info, "third", &length, &flag);
  CHECK_EQ(flag, 0);
#ifdef CANELE_MPI /* of MPI-4.0 */
  length = 3;
  MPI_Info_get_string(info, "first", &length, value, &flag);
  CHECK(flag && length == 6 && strcmp(value, "th") == 0);
  length = 0;
  MPI_Info_get_string(info, "first", &length, NULL, &flag);
  CHECK(flag && length == 6);
  MPI_Info_get_string(info, "absent", &length, value, &flag);
  CHECK(!flag && length == 6);
#endif
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "first");
  MPI_Info_get_nthkey(info, 0, key);
  CHECK(strcmp(key, "second") == 0);
  for (int n = 0; n < 2; ++n) {
    MPI_Info_get_nthkey(copy, n, key);
    CHECK(strcmp(key, n == 0 ? "first" : "second") == 0);
  }
  MPI_Info_free(&info);
  MPI_Info_free(&copy);
  CHECK(info == MPI_INFO_NULL && copy == MPI_INFO_NULL);
}

static void wrong_infos(void) {
  MPI_Info info;
  char text[MPI_MAX_INFO_VAL + 2];
  int count;
  memset(text, 'x', sizeof text);
  text[MPI_MAX_INFO_KEY] = '\0';
  MPI_Info_create(&info);
  CHECK_EQ(class_of(MPI_Info_set(info, text, "value")), MPI_ERR_INFO_KEY);
  CHECK_EQ(class_of(MPI_Info_set(info, "", "value")), MPI_ERR_INFO_KEY);
  text[MPI_MAX_INFO_KEY] = 'x';
  text[MPI_MAX_INFO_VAL + 1] = '\0';
  CHECK_EQ(class_of(MPI_Info_set(info, "key", text)), MPI_ERR_INFO_VALUE);
  CHECK_EQ(class_of(MPI_Info_delete(info, "key")), MPI_ERR_INFO_NOKEY);
#ifdef CANELE_MPI /* Open MPI answers the general class */
  CHECK_EQ(class_of(MPI_Info_get_nthkey(info, 0, text)), MPI_ERR_ARG);
  MPI_Info stale = info;
  MPI_Info_free(&info);
  CHECK_EQ(class_of(MPI_Info_get_nkeys(stale, &count)), MPI_ERR_INFO);
#else
  MPI_Info_free(&info);
#endif
  CHECK_EQ(class_of(MPI_Info_get_nkeys(MPI_INFO_NULL, &count)), MPI_ERR_INFO);
}

/* ---- windows */

static void check_attributes(MPI_Win window, void *base, MPI_Aint size, int unit, int flavor) {
  void *found = NULL;
  MPI_Aint *found_size = NULL;
  int *number = NULL, flag = 0;
  MPI_Win_get_attr(window, MPI_WIN_BASE, &found, &flag);
  CHECK(flag && found == base);
  MPI_Win_get_attr(window, MPI_WIN_SIZE, &found_size, &flag);
  CHECK(flag && *found_size == size);
  MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &number, &flag);
  CHECK(flag && *number == unit);
  MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &number, &flag);
  CHECK(flag && *number == flavor);
  MPI_Win_get_attr(window, MPI_WIN_MODEL, &number, &flag);
  CHECK(flag && (*number == MPI_WIN_UNIFIED || *number == MPI_WIN_SEPARATE));
}

static void creation(void) {
  int part[16] = {0}, *allocated = NULL;
  MPI_Win window;
  /* Each rank has a size and a unit of its own, and one has no memory. */
  const int count = rank_ == 0 ? 0 : 16;
  MPI_Win_create(count == 0 ? NULL : part, (MPI_Aint)sizeof part[0] * count, rank_ + 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);
  CHECK(window != MPI_WIN_NULL);
  check_attributes(window, count == 0 ? NULL : part, (MPI_Aint)sizeof part[0] * count, rank_ + 1,
                   MPI_WIN_FLAVOR_CREATE);
  CHECK(MPI_Win_f2c(MPI_Win_c2f(window)) == window);
  MPI_Win_free(&window);
  CHECK(window == MPI_WIN_NULL);
  MPI_Win_allocate((MPI_Aint)sizeof part, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &window);
  CHECK(allocated != NULL && (uintptr_t)allocated % sizeof(double) == 0);
  check_attributes(window, allocated, (MPI_Aint)sizeof part, 4, MPI_WIN_FLAVOR_ALLOCATE);
  for (int i = 0; i < 16; ++i) allocated[i] = i;
  MPI_Win_free(&window);
}

/* A window outlives its communicator, and has its ranks. */
static void communicator_of_a_window(void) {
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size_ - rank_, &reversed);
  int value = -1, size, rank, result = -1;
  MPI_Win window;
  MPI_Group group, parent;
  MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, reversed, &window);
  MPI_Comm_group(reversed, &parent);
  MPI_Comm_free(&reversed);
  MPI_Win_get_group(window, &group);
  MPI_Group_size(group, &size);
  MPI_Group_rank(group, &rank);
  CHECK_EQ(size, size_);
  CHECK_EQ(rank, size_ - 1 - rank_);
  const int zero = 0;
  MPI_Group_translate_ranks(group, 1, &zero, parent, &result);
  CHECK_EQ(result, 0);
  MPI_Win_fence(0, window);
  MPI_Put(&rank_, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(value, (rank_ + 1) % size_); /* the rank before in the window is the next of the world */
  MPI_Win_free(&window);
  MPI_Group_free(&group);
  MPI_Group_free(&parent);
}

static void names(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int value = 0, length = 7;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_get_name(window, name, &length);
  CHECK(length == (int)strlen(name));
  MPI_Win_set_name(window, "halo");
  MPI_Win_get_name(window, name, &length);
  CHECK(strcmp(name, "halo") == 0 && length == 4);
  MPI_Win_free(&window);
}

static void hints(void) {
  MPI_Info info, found;
  char value[MPI_MAX_INFO_VAL + 1];
  int memory = 0, flag = 0;
  MPI_Win window;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  MPI_Info_set(info, "unknown_to_all", "yes");
  MPI_Win_create(&memory, sizeof memory, 1, info, MPI_COMM_WORLD, &window);
  MPI_Win_get_info(window, &found);
  CHECK(found != MPI_INFO_NULL);
#ifdef CANELE_MPI
  MPI_Info_get(found, "no_locks", MPI_MAX_INFO_VAL, value, &flag);
  CHECK(flag && strcmp(value, "true") == 0);
  MPI_Info_get(found, "accumulate_ordering", MPI_MAX_INFO_VAL, value, &flag);
  CHECK(flag && strcmp(value, "rar,raw,war,waw") == 0);
  MPI_Info_get(found, "unknown_to_all", MPI_MAX_INFO_VAL, value, &flag);
  CHECK_EQ(flag, 0);
#endif
  MPI_Info_free(&found);
  MPI_Info_set(info, "no_locks", "false");
  MPI_Win_set_info(window, info);
  MPI_Info_free(&info);
  MPI_Win_get_info(window, &found);
  MPI_Info_get(found, "no_locks", MPI_MAX_INFO_VAL, value, &flag);
  CHECK(flag && strcmp(value, "false") == 0);
  MPI_Info_free(&found);
  MPI_Win_free(&window);
}

static void error_handlers(void) {
  int value = 0;
  MPI_Win window;
  MPI_Errhandler handler;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_get_errhandler(window, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL); /* whatever the communicator has */
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_get_errhandler(window, &handler);
  CHECK(handler == MPI_ERRORS_RETURN);
  MPI_Win_free(&window);
}

/* ---- the program's own attributes and error handlers */

static int deleted_, deleted_sum_, wants_to_stay_;

static int on_delete(MPI_Win window, int keyval, void *value, void *extra) {
  (void)window, (void)keyval;
  if (wants_to_stay_) return MPI_ERR_OTHER;
  CHECK(extra == &deleted_);
  ++deleted_;
  deleted_sum_ += *(int *)value;
  return MPI_SUCCESS;
}

static void attributes(void) {
  int memory = 0, flag = 7, values[3] = {1, 10, 100}, keys[2], *found = NULL;
  MPI_Win window, other;
  deleted_ = deleted_sum_ = 0;
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
  for (int i = 0; i < 2; ++i) MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keys[i], &deleted_);
  CHECK(keys[0] != keys[1]);
  MPI_Win_get_attr(window, keys[0], &found, &flag);
  CHECK_EQ(flag, 0);
  MPI_Win_set_attr(window, keys[0], &values[0]);
  MPI_Win_set_attr(window, keys[1], &values[1]);
  MPI_Win_get_attr(window, keys[1], &found, &flag);
  CHECK(flag && found == &values[1]);
  MPI_Win_get_attr(other, keys[1], &found, &flag);
  CHECK_EQ(flag, 0);
  CHECK_EQ(deleted_, 0);
  MPI_Win_set_attr(window, keys[0], &values[2]); /* the former value goes */
  CHECK(deleted_ == 1 && deleted_sum_ == 1);
  MPI_Win_delete_attr(window, keys[1]);
  CHECK(deleted_ == 2 && deleted_sum_ == 11);
  MPI_Win_get_attr(window, keys[1], &found, &flag);
  CHECK_EQ(flag, 0);
  for (int i = 0; i < 2; ++i) {
    MPI_Win_free_keyval(&keys[i]);
    CHECK_EQ(keys[i], MPI_KEYVAL_INVALID);
  }
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
#ifdef CANELE_MPI /* Open MPI frees the window */
  wants_to_stay_ = 1;
  CHECK_EQ(MPI_Win_free(&window), MPI_ERR_OTHER);
  wants_to_stay_ = 0;
#endif
  MPI_Win_free(&window); /* a freed key lives as long as an attribute has it */
  CHECK(deleted_ == 3 && deleted_sum_ == 111);
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
#ifdef CANELE_MPI /* Open MPI has another class */
  CHECK_EQ(class_of(MPI_Win_set_attr(other, MPI_KEYVAL_INVALID, &values[0])), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Win_set_attr(other, MPI_WIN_SIZE, &values[0])), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Win_delete_attr(other, keys[0])), MPI_ERR_KEYVAL);
#endif
  MPI_Win_free(&other);
}

static int errors_, last_class_;
static MPI_Win window_of_error_;

static void on_error(MPI_Win *window, int *code, ...) {
  ++errors_;
  window_of_error_ = *window;
  last_class_ = class_of(*code);
}

static void own_error_handlers(void) {
  MPI_Win_errhandler_fn *function = on_error; /* the type's name before MPI-2.2 */
  int memory = 0;
  MPI_Win window;
  MPI_Errhandler mine, found;
  errors_ = 0;
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_create_errhandler(function, &mine);
  MPI_Win_set_errhandler(window, mine);
  MPI_Win_get_errhandler(window, &found);
  CHECK(found == mine);
  MPI_Errhandler_free(&found);
  MPI_Errhandler_free(&mine); /* the window still has it */
  CHECK(mine == MPI_ERRHANDLER_NULL);
  CHECK_EQ(class_of(MPI_Win_unlock(0, window)), MPI_ERR_RMA_SYNC);
  CHECK(errors_ == 1 && last_class_ == MPI_ERR_RMA_SYNC && window_of_error_ == window);
  MPI_Win_fence(0, window);
  CHECK_EQ(class_of(MPI_Put(&memory, 1, MPI_INT, size_, 0, 1, MPI_INT, window)), MPI_ERR_RANK);
  CHECK(errors_ == 2 && last_class_ == MPI_ERR_RANK);
  CHECK_EQ(MPI_Win_call_errhandler(window, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK(errors_ == 3 && last_class_ == MPI_ERR_OTHER);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Win_call_errhandler(window, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK_EQ(errors_, 3);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void memory(void) {
  double *numbers = NULL;
  MPI_Alloc_mem(1000 * (MPI_Aint)sizeof *numbers, MPI_INFO_NULL, &numbers);
  CHECK(numbers != NULL && (uintptr_t)numbers % sizeof *numbers == 0);
  for (int i = 0; i < 1000; ++i) numbers[i] = i;
  MPI_Free_mem(numbers);
}

/* ---- errors */

static void wrong_creation(void) {
  int value;
  void *base;
  MPI_Win window;
  const MPI_Comm world = MPI_COMM_WORLD;
  CHECK_EQ(class_of(MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, world, &window)), MPI_ERR_SIZE);
  CHECK_EQ(class_of(MPI_Win_create(&value, 4, 0, MPI_INFO_NULL, world, &window)), MPI_ERR_DISP);
  CHECK_EQ(class_of(MPI_Win_create(&value, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &window)), MPI_ERR_COMM);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, world, &window)), MPI_ERR_BASE);
#endif
  CHECK_EQ(class_of(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, world, &base, &window)), MPI_ERR_SIZE);
  CHECK_EQ(class_of(MPI_Win_allocate(4, -1, MPI_INFO_NULL, world, &base, &window)), MPI_ERR_DISP);
  CHECK_EQ(class_of(MPI_Win_fence(0, MPI_WIN_NULL)), MPI_ERR_WIN);
  window = MPI_WIN_NULL;
  CHECK_EQ(class_of(MPI_Win_free(&window)), MPI_ERR_WIN);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL)), MPI_ERR_WIN);
}

/* Wrong arguments of operations: nothing is done, and the window can be used afterwards. */
static void wrong_operations(void) {
  int part[4] = {1, 2, 3, 4}, value = 9;
  MPI_Win window;
  MPI_Datatype strided;
  MPI_Win_create(part, sizeof part, sizeof part[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Type_vector(2, 1, 4, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_Win_fence(0, window);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, size_, 0, 1, MPI_INT, window)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, window)), MPI_ERR_DISP);
  CHECK_EQ(class_of(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, window)), MPI_ERR_COUNT);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, window)), MPI_ERR_TYPE);
  CHECK_EQ(class_of(MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, window)), MPI_ERR_TYPE);
#ifdef CANELE_MPI /* Open MPI 4.1 writes beyond windows */
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Get(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 0, INTPTR_MAX / 4, 1, MPI_INT, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Get(part, 2, MPI_INT, 0, 0, 1, strided, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Put(part, 2, MPI_INT, 0, 0, 1, MPI_INT, window)), MPI_ERR_TRUNCATE);
  CHECK_EQ(class_of(MPI_Fetch_and_op(&value, part, MPI_INT, 0, 4, MPI_SUM, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Fetch_and_op(&value, part, strided, 0, 0, MPI_SUM, window)), MPI_ERR_RMA_RANGE);
  CHECK_EQ(class_of(MPI_Compare_and_swap(&value, &value, part, MPI_FLOAT, 0, 0, window)), MPI_ERR_TYPE);
#endif
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  CHECK(part[0] == 1 && part[1] == 2 && part[2] == 3 && part[3] == 4 && value == 9);
  MPI_Type_free(&strided);
  MPI_Win_free(&window);
}

static void wrong_synchronisation(void) {
  int value = 0, other = 1;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Put(&other, 1, MPI_INT, 0, 0, 1, MPI_INT, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_unlock(0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_unlock_all(window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_flush(0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_flush_all(window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_lock(77, 0, 0, window)), MPI_ERR_LOCKTYPE);
  CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, size_, 0, window)), MPI_ERR_RANK);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, window)), MPI_ERR_ASSERT);
  CHECK_EQ(class_of(MPI_Win_fence(1, window)), MPI_ERR_ASSERT);
#endif
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
#ifdef CANELE_MPI /* Open MPI 4.1 lets a program lock and free a locked window */
  CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_lock_all(0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_fence(0, window)), MPI_ERR_RMA_SYNC);
  CHECK_EQ(class_of(MPI_Win_free(&window)), MPI_ERR_RMA_SYNC);
#endif
  if (size_ > 1) CHECK_EQ(class_of(MPI_Put(&other, 1, MPI_INT, 1, 0, 1, MPI_INT, window)), MPI_ERR_RMA_SYNC);
  MPI_Win_unlock(0, window);
  MPI_Win_lock_all(0, window);
#ifdef CANELE_MPI
  CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window)), MPI_ERR_RMA_SYNC);
#endif
  CHECK_EQ(class_of(MPI_Win_unlock(0, window)), MPI_ERR_RMA_SYNC);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  CHECK_EQ(value, 0);
}

static void many(void) {
  MPI_Win windows[20];
  int values[20], sent[20];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      values[i] = -1;
      sent[i] = 100 * round + i;
      MPI_Win_create(&values[i], sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[i]);
    }
    for (int i = 0; i < 20; ++i) MPI_Win_fence(MPI_MODE_NOPRECEDE, windows[i]);
    for (int i = 0; i < 20; ++i) MPI_Put(&sent[i], 1, MPI_INT, (rank_ + 1) % size_, 0, 1, MPI_INT, windows[i]);
    for (int i = 19; i >= 0; --i) MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[i]);
    for (int i = 0; i < 20; ++i) CHECK_EQ(values[i], 100 * round + i);
    for (int i = 0; i < 20; ++i) MPI_Win_free(&windows[i]);
  }
}

/* One is left for MPI_Finalize. */
static void left_over(void) {
  static int value;
#ifdef CANELE_MPI /* MPI asks programs to free them */
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(&rank_, 1, MPI_INT, rank_, 0, 1, MPI_INT, window);
#else
  (void)value;
#endif
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  set_and_get();
  wrong_infos();
  creation();
  communicator_of_a_window();
  names();
  hints();
  error_handlers();
  attributes();
  own_error_handlers();
  memory();
  wrong_creation();
  wrong_operations();
  wrong_synchronisation();
  many();
  left_over();
  return finish();
}
