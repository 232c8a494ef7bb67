/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Error handlers of the program and their life, who inherits them, and error classes, codes and texts of the program.
 */
#include <setjmp.h>

#include "check.h"

#ifdef CANELE_MPI
#include "mpi1.h"
#endif

static int calls_, last_code_;
static MPI_Comm last_comm_;
static jmp_buf back_;

static void on_error(MPI_Comm *comm, int *code, ...) {
  int size;
  MPI_Comm_size(*comm, &size); /* MPI works inside */
  ++calls_;
  last_comm_ = *comm;
  last_code_ = *code;
}

static void on_error_jump(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
  longjmp(back_, 1);
}

/* Makes an error on the communicator, and checks that the program's function has seen it. */
static void check_error(MPI_Comm comm) {
  int value = 0;
  calls_ = 0;
  CHECK_EQ(class_of(MPI_Send(&value, 1, MPI_INT, 999, 0, comm)), MPI_ERR_RANK);
  CHECK(calls_ == 1 && last_comm_ == comm && class_of(last_code_) == MPI_ERR_RANK);
}

static void handlers(void) {
  MPI_Comm_errhandler_fn *function = on_error; /* the type's name before MPI-2.2 */
  MPI_Errhandler mine, found;
  MPI_Comm comm, copy;
  MPI_Group group;
  MPI_Comm_create_errhandler(function, &mine);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Comm_get_errhandler(comm, &found);
  CHECK(found == mine);
  MPI_Errhandler_free(&found);
  CHECK(found == MPI_ERRHANDLER_NULL);
  MPI_Errhandler_free(&mine); /* the communicator has it still */
  check_error(comm);
  MPI_Comm_group(comm, &group);
  for (int way = 0; way < 5; ++way) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (way == 0) MPI_Comm_dup(comm, &copy);
    if (way == 1) MPI_Comm_split(comm, 0, 0, &copy);
    if (way == 2) MPI_Comm_create(comm, group, &copy);
    if (way == 3) MPI_Comm_create_group(comm, group, 3, &copy);
    if (way == 4) MPI_Comm_idup(comm, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_error(copy);
    MPI_Comm_free(&copy);
  }
  MPI_Group_free(&group);
  /* The error of a request. */
  int in = 0, out[2] = {1, 2};
  MPI_Request receive;
  calls_ = 0;
  MPI_Irecv(&in, 1, MPI_INT, rank_, 5, comm, &receive);
  MPI_Send(out, 2, MPI_INT, rank_, 5, comm);
  CHECK_EQ(class_of(MPI_Wait(&receive, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
  CHECK(calls_ == 1 && last_comm_ == comm && class_of(last_code_) == MPI_ERR_TRUNCATE);
  CHECK_EQ(MPI_Comm_call_errhandler(comm, MPI_ERR_TAG), MPI_SUCCESS);
  CHECK(calls_ == 2 && last_code_ == MPI_ERR_TAG);
  MPI_Comm_get_errhandler(comm, &found); /* outlives the communicator */
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, found);
  MPI_Errhandler_free(&found);
  check_error(MPI_COMM_SELF);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void predefined(void) {
  MPI_Errhandler found;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
  CHECK(found == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&found); /* legal for one that was asked for */
  CHECK(found == MPI_ERRHANDLER_NULL);
#if MPI_VERSION >= 4 || defined(CANELE_MPI)
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &found);
  CHECK(found == MPI_ERRORS_ABORT);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TAG), MPI_SUCCESS);
#ifdef CANELE_MPI
  MPI_Errhandler stale;
  MPI_Comm_create_errhandler(on_error, &stale);
  found = stale;
  MPI_Errhandler_free(&found);
  CHECK_EQ(class_of(MPI_Comm_set_errhandler(MPI_COMM_SELF, stale)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL)), MPI_ERR_ARG);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* A function that does not return, and handlers that are not used up. */
static void jumps(void) {
  MPI_Errhandler handler;
  for (volatile int i = 0; i < 10000; ++i) {
    int value = 0;
    MPI_Comm_create_errhandler(on_error_jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    if (setjmp(back_) == 0) {
      MPI_Send(&value, 1, MPI_INT, 999, 0, MPI_COMM_SELF);
      CHECK(0);
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static int last_used(void) {
  void *value;
  int flag;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
  CHECK(flag);
  return *(int *)value;
}

static void codes(void) {
  const int before = last_used();
  int mine, code, of_tag, length;
  char text[MPI_MAX_ERROR_STRING];
  CHECK(before >= MPI_ERR_LASTCODE);
  MPI_Add_error_class(&mine);
  MPI_Add_error_code(mine, &code);
  MPI_Add_error_code(MPI_ERR_TAG, &of_tag);
  CHECK(mine > MPI_ERR_LASTCODE && code > MPI_ERR_LASTCODE && of_tag > MPI_ERR_LASTCODE);
  CHECK(mine != code && code != of_tag && last_used() >= of_tag && last_used() > before);
  CHECK(class_of(mine) == mine && class_of(code) == mine && class_of(of_tag) == MPI_ERR_TAG);
  MPI_Error_string(code, text, &length);
  CHECK(length == 0 && text[0] == '\0');
  MPI_Add_error_string(code, "it went wrong");
  MPI_Error_string(code, text, &length);
  CHECK(length == 13 && strcmp(text, "it went wrong") == 0);
  MPI_Add_error_string(code, "otherwise");
  MPI_Error_string(code, text, &length);
  CHECK(strcmp(text, "otherwise") == 0);
  MPI_Error_string(mine, text, &length);
  CHECK_EQ(length, 0);
#ifdef CANELE_MPI
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Add_error_string(MPI_ERR_TAG, "another text"), MPI_ERR_ARG);
  CHECK_EQ(MPI_Add_error_code(code, &length), MPI_ERR_ARG);
  CHECK_EQ(MPI_Add_error_code(9999999, &length), MPI_ERR_ARG);
  CHECK_EQ(MPI_Remove_error_class(MPI_ERR_TAG), MPI_ERR_ARG);
  CHECK_EQ(MPI_Remove_error_class(mine), MPI_ERR_ARG); /* has a code */
  CHECK_EQ(MPI_Remove_error_class(code), MPI_ERR_ARG);
  CHECK_EQ(MPI_Remove_error_code(mine), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Remove_error_string(code);
  MPI_Error_string(code, text, &length);
  CHECK_EQ(length, 0);
  MPI_Remove_error_code(code);
  MPI_Remove_error_class(mine);
  MPI_Remove_error_code(of_tag);
  CHECK_EQ(last_used(), before);
  CHECK_EQ(class_of(code), MPI_ERR_UNKNOWN);
  for (int i = 0; i < 100000; ++i) {
    MPI_Add_error_code(MPI_ERR_TAG, &code);
    MPI_Remove_error_code(code);
  }
  CHECK_EQ(last_used(), before);
#endif
}

#ifdef CANELE_MPI
/* Programs that declare the names of MPI-1, and old libraries, still link. */
static void old_names(void) {
  MPI_Errhandler mine, found;
  MPI_Errhandler_create(on_error, &mine);
  MPI_Errhandler_set(MPI_COMM_SELF, mine);
  MPI_Errhandler_get(MPI_COMM_SELF, &found);
  CHECK(found == mine);
  check_error(MPI_COMM_SELF);
  MPI_Errhandler_free(&found);
  MPI_Errhandler_free(&mine);
  MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}
#else
static void old_names(void) {}
#endif

int main(int argc, char **argv) {
#ifdef CANELE_MPI /* MPI-4.0 has these calls before MPI_Init */
  int code = 0, length;
  char text[MPI_MAX_ERROR_STRING];
  CHECK_EQ(MPI_Add_error_code(MPI_ERR_OTHER, &code), MPI_SUCCESS);
  CHECK_EQ(MPI_Error_string(code, text, &length), MPI_SUCCESS);
  CHECK_EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
#endif
  start(&argc, &argv);
  handlers();
  predefined();
  jumps();
  codes();
  old_names();
  return finish();
}
