/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Attributes of communicators and datatypes: copies at duplications, ends, keys that are freed in use, functions of the
 * program that fail or call MPI, the names of MPI-1, and the end of MPI_COMM_SELF.
 */
#include "check.h"

/* What the program's functions do, and have seen. */
static int fails_, copied_, deleted_, order_[8];
static int numbers_[8];

static int on_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag) {
  int size, found;
  void *same = NULL;
  CHECK(extra == &numbers_[7]);
  MPI_Comm_size(comm, &size); /* MPI works inside */
  MPI_Comm_get_attr(comm, keyval, &same, &found);
  CHECK(found && same == value);
  ++copied_;
  if (fails_) return MPI_ERR_OTHER;
  *flag = value != &numbers_[0]; /* the first one is not copied */
  *(void **)copy = (int *)value + 1;
  return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra) {
  int size;
  (void)keyval;
  CHECK(extra == &numbers_[7]);
  MPI_Comm_size(comm, &size);
  if (fails_) return MPI_ERR_INTERN;
  order_[deleted_++ % 8] = (int)((int *)value - numbers_);
  return MPI_SUCCESS;
}

static void *value_of(MPI_Comm comm, int keyval) {
  void *value = NULL;
  int flag;
  MPI_Comm_get_attr(comm, keyval, &value, &flag);
  return flag ? value : NULL;
}

static int make_key(void) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(on_copy, on_delete, &key, &numbers_[7]);
  CHECK(key != MPI_KEYVAL_INVALID);
  return key;
}

/* Values, copies and ends; a duplicate of each kind has the copies. */
static void values(void) {
  int first = make_key(), second = make_key(), always, never;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &always, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, NULL);
  MPI_Comm comm, copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  CHECK(value_of(comm, first) == NULL);
  MPI_Comm_set_attr(comm, first, &numbers_[0]);
  MPI_Comm_set_attr(comm, second, &numbers_[1]);
  MPI_Comm_set_attr(comm, always, NULL);
  MPI_Comm_set_attr(comm, never, &numbers_[3]);
  for (int way = 0; way < 3; ++way) {
    MPI_Request request = MPI_REQUEST_NULL;
    copied_ = deleted_ = 0;
    if (way == 0) MPI_Comm_dup(comm, &copy);
    if (way == 1) MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy);
    if (way == 2) MPI_Comm_idup(comm, &copy, &request);
    CHECK_EQ(copied_, 2);
    if (way == 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
    void *found = &numbers_[5];
    int flag = 0;
    CHECK(value_of(copy, first) == NULL && value_of(copy, second) == &numbers_[2] && value_of(copy, never) == NULL);
    MPI_Comm_get_attr(copy, always, &found, &flag);
    CHECK(flag == 1 && found == NULL);
    MPI_Comm_free(&copy);
    CHECK(deleted_ == 1 && order_[0] == 2);
  }
  MPI_Comm_split(comm, 0, 0, &copy); /* has no copies */
  CHECK(copied_ == 2 && value_of(copy, second) == NULL);
  MPI_Comm_free(&copy);
  deleted_ = 0;
  MPI_Comm_set_attr(comm, second, &numbers_[4]); /* the former value goes */
  CHECK(deleted_ == 1 && order_[0] == 1 && value_of(comm, second) == &numbers_[4]);
  MPI_Comm_delete_attr(comm, second);
  CHECK(deleted_ == 2 && order_[1] == 4 && value_of(comm, second) == NULL);
  for (int time = 0; time < 2; ++time) { /* the attribute lives on, and the key may be freed again */
    int freed = first;
    MPI_Comm_free_keyval(&freed);
    CHECK_EQ(freed, MPI_KEYVAL_INVALID);
  }
  CHECK(value_of(comm, first) == &numbers_[0]);
  MPI_Comm_free(&comm);
  CHECK(deleted_ == 3 && order_[2] == 0);
  MPI_Comm_free_keyval(&second);
  MPI_Comm_free_keyval(&always);
  MPI_Comm_free_keyval(&never);
}

/* A function that fails: the call fails, and the object stays as it is. */
static void failures(void) {
  int key = make_key(), other = make_key(), freed;
  MPI_Comm comm, copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(comm, key, &numbers_[1]);
  fails_ = 1;
  CHECK_EQ(class_of(MPI_Comm_set_attr(comm, key, &numbers_[2])), MPI_ERR_INTERN);
  CHECK_EQ(class_of(MPI_Comm_delete_attr(comm, key)), MPI_ERR_INTERN);
  CHECK_EQ(class_of(MPI_Comm_dup(comm, &copy)), MPI_ERR_OTHER);
  CHECK(value_of(comm, key) == &numbers_[1]);
  MPI_Comm kept = comm;
  CHECK_EQ(class_of(MPI_Comm_free(&comm)), MPI_ERR_INTERN); /* by the error handler of the communicator */
  CHECK(comm == kept);
  fails_ = 0;
#ifdef CANELE_MPI
  CHECK(copy == MPI_COMM_NULL);
  CHECK_EQ(class_of(MPI_Comm_set_attr(comm, MPI_TAG_UB, &numbers_[2])), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Comm_delete_attr(comm, MPI_TAG_UB)), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Comm_set_attr(comm, MPI_KEYVAL_INVALID, &numbers_[2])), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Comm_delete_attr(comm, other)), MPI_ERR_KEYVAL);
  freed = other;
  MPI_Comm_free_keyval(&freed);
  void *value;
  int flag;
  CHECK_EQ(class_of(MPI_Comm_set_attr(comm, other, &numbers_[2])), MPI_ERR_KEYVAL);
  CHECK_EQ(class_of(MPI_Comm_get_attr(comm, other, &value, &flag)), MPI_ERR_KEYVAL);
  int of_type;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &of_type, NULL);
  CHECK_EQ(class_of(MPI_Comm_set_attr(comm, of_type, &numbers_[2])), MPI_ERR_KEYVAL);
  MPI_Type_free_keyval(&of_type);
#else
  freed = other;
  MPI_Comm_free_keyval(&freed);
#endif
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);
}

static int types_copied_, types_deleted_;

static int on_copy_type(MPI_Datatype type, int keyval, void *extra, void *value, void *copy, int *flag) {
  int size;
  (void)keyval, (void)extra;
  MPI_Type_size(type, &size);
  ++types_copied_;
  if (fails_) return MPI_ERR_OTHER;
  *(void **)copy = value;
  *flag = 1;
  return MPI_SUCCESS;
}

static int on_delete_type(MPI_Datatype type, int keyval, void *value, void *extra) {
  int size;
  (void)keyval, (void)extra, (void)value;
  MPI_Type_size(type, &size);
  ++types_deleted_;
  return MPI_SUCCESS;
}

static void types(void) {
  int key, flag, own, sizes[1], number = 0;
  void *value;
  MPI_Datatype type, pair, copy, part;
  MPI_Type_create_keyval(on_copy_type, on_delete_type, &key, NULL);
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_set_attr(type, key, &number);
  MPI_Type_get_attr(type, key, &value, &flag);
  CHECK(flag && value == &number);
  MPI_Type_dup(type, &copy);
  MPI_Type_get_attr(copy, key, &value, &flag);
  CHECK(flag && value == &number && types_copied_ == 1);
  MPI_Type_delete_attr(copy, key);
  MPI_Type_get_attr(copy, key, &value, &flag);
  CHECK(!flag && types_deleted_ == 1);
  MPI_Type_free(&copy);
  /* A handle that MPI_Type_get_contents gives is another one of the program, or another type. */
  MPI_Type_contiguous(2, type, &pair);
  MPI_Type_get_contents(pair, 1, 0, 1, sizes, NULL, &part);
  own = part == type;
  MPI_Type_free(&part);
  MPI_Type_get_attr(type, key, &value, &flag);
  CHECK(flag && types_deleted_ == 1);
  MPI_Type_free(&type); /* in use in `pair`: its attributes end now */
#ifdef CANELE_MPI
  CHECK(own && types_deleted_ == 2);
#else
  (void)own;
#endif
  MPI_Type_free(&pair);
  CHECK_EQ(types_deleted_, 2);
  MPI_Type_set_attr(MPI_INT, key, &number);
  MPI_Type_get_attr(MPI_INT, key, &value, &flag);
  CHECK(flag && value == &number);
  fails_ = 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Type_dup(MPI_INT, &copy)), MPI_ERR_OTHER);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  fails_ = 0;
  MPI_Type_delete_attr(MPI_INT, key);
  CHECK_EQ(types_deleted_, 3);
  MPI_Type_free_keyval(&key);
}

/* Keys and attributes are not used up. */
static void many(void) {
  const int rounds = 20000;
  for (int i = 0; i < rounds; ++i) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &numbers_[i % 8]);
    CHECK(value_of(MPI_COMM_SELF, key) == &numbers_[i % 8]);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
  }
}

/* The names of MPI-1, mixed with the later ones. */
static void old_names(void) {
  int key, flag = 0;
  void *value = NULL;
  MPI_Comm comm, copy;
  MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Attr_put(comm, key, &numbers_[3]);
  MPI_Comm_dup(comm, &copy);
  MPI_Attr_get(copy, key, &value, &flag);
  CHECK(flag && value == &numbers_[3] && value_of(copy, key) == value);
  MPI_Attr_delete(copy, key);
  CHECK(value_of(copy, key) == NULL);
  MPI_Attr_get(copy, MPI_TAG_UB, &value, &flag);
  CHECK(flag && *(int *)value >= 32767);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
  MPI_Keyval_free(&key);
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
}

static int ends_, next_end_;

/* Called in MPI_Finalize: the one that was set last comes first, and MPI works. */
static int on_end(MPI_Comm comm, int keyval, void *value, void *extra) {
  int flag, sum = 0, one = 1;
  (void)keyval, (void)extra;
  CHECK(comm == MPI_COMM_SELF);
  MPI_Initialized(&flag);
  CHECK(flag);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum, size_);
  CHECK_EQ((int *)value - numbers_, next_end_);
  --next_end_;
  ++ends_;
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  values();
  failures();
  types();
  many();
  old_names();
  int keys[4];
  for (int i = 0; i < 4; ++i) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keys[i], NULL);
  for (int i = 0; i < 4; ++i) MPI_Comm_set_attr(MPI_COMM_SELF, keys[3 - i], &numbers_[i]);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keys[0], &numbers_[0]); /* is not deleted in MPI_Finalize */
  for (int i = 0; i < 4; ++i) MPI_Comm_free_keyval(&keys[i]);
  next_end_ = 3;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (ends_ != 4) fprintf(stderr, "rank %d: %d attributes of MPI_COMM_SELF ended instead of 4\n", rank_, ends_);
  return ends_ == 4 ? 0 : 1;
}
