/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As nulls.c, for the functions of windows. Run by ctest, alone. One thread.
 */
#include "nulls.h"

static void on_error(MPI_Win *window, int *code, ...) { (void)window, (void)code; }

static void windows(void) {
  MPI_Errhandler handler;
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Win window;
  void *base;
  REFUSED(MPI_Alloc_mem(8, MPI_INFO_NULL, NULL));
  REFUSED(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, world, NULL));
  REFUSED(MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, &base, NULL));
  REFUSED(MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, NULL, &window));
  REFUSED(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, world, &base, NULL));
  REFUSED(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, world, NULL, &window));
  REFUSED(MPI_Win_create_c(&value, sizeof value, 1, MPI_INFO_NULL, world, NULL));
  REFUSED(MPI_Win_allocate_c(8, 1, MPI_INFO_NULL, world, &base, NULL));
  REFUSED(MPI_Win_allocate_c(8, 1, MPI_INFO_NULL, world, NULL, &window));
  REFUSED(MPI_Win_allocate_shared_c(8, 1, MPI_INFO_NULL, world, NULL, &window));
  REFUSED(MPI_Win_create_dynamic(MPI_INFO_NULL, world, NULL));
  REFUSED(MPI_Win_free(NULL));
  MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, world, &base, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  REFUSED(MPI_Win_shared_query(window, 0, NULL, &value, &base));
  REFUSED(MPI_Win_shared_query(window, 0, &address, NULL, &base));
  REFUSED(MPI_Win_shared_query(window, 0, &address, &value, NULL));
  REFUSED(MPI_Win_shared_query_c(window, 0, &address, NULL, &base));
  REFUSED(MPI_Win_shared_query_c(window, 0, NULL, &address, &base));
  MPI_Win_free(&window);
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, world, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  REFUSED(MPI_Win_get_group(window, NULL));
  REFUSED(MPI_Win_set_name(window, NULL));
  REFUSED(MPI_Win_get_name(window, NULL, &value));
  REFUSED(MPI_Win_get_name(window, text, NULL));
  REFUSED(MPI_Win_get_attr(window, MPI_WIN_SIZE, NULL, &value));
  REFUSED(MPI_Win_get_attr(window, MPI_WIN_SIZE, &base, NULL));
  REFUSED(MPI_Win_get_info(window, NULL));
  REFUSED(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, NULL, NULL));
  REFUSED(MPI_Win_free_keyval(NULL));
  REFUSED(MPI_Win_create_errhandler(NULL, &handler));
  REFUSED(MPI_Win_create_errhandler(on_error, NULL));
  REFUSED(MPI_Errhandler_free(NULL));
  REFUSED(MPI_Win_get_errhandler(window, NULL));
  REFUSED(MPI_Win_test(window, NULL));
  MPI_Win_fence(0, window);
  REFUSED(MPI_Rput(&other, 1, MPI_INT, 0, 0, 1, MPI_INT, window, NULL));
  REFUSED(MPI_Rget(&other, 1, MPI_INT, 0, 0, 1, MPI_INT, window, NULL));
  REFUSED(MPI_Raccumulate(&other, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window, NULL));
  REFUSED(MPI_Rget_accumulate(&other, 1, MPI_INT, &value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window, NULL));
  REFUSED(MPI_Fetch_and_op(NULL, &other, MPI_INT, 0, 0, MPI_SUM, window));
  REFUSED(MPI_Fetch_and_op(&other, NULL, MPI_INT, 0, 0, MPI_SUM, window));
  REFUSED(MPI_Compare_and_swap(NULL, &one, &other, MPI_INT, 0, 0, window));
  REFUSED(MPI_Compare_and_swap(&one, NULL, &other, MPI_INT, 0, 0, window));
  REFUSED(MPI_Compare_and_swap(&one, &zero, NULL, MPI_INT, 0, 0, window));
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  windows();
  return finish();
}
