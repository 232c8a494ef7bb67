// SPDX-License-Identifier: BSD-3-Clause
//
// The functions on attributes and error handlers of windows, called by their entry points. Any thread.
//
// Windows are never duplicated, so copy functions of attributes are never called.
#include <cstring>

#include "calls/windows.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"

namespace canele::mpi {
namespace {

bool is_predefined_of_window(int keyval) { return keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL; }

/// Returns what a predefined attribute of a window points to.
void* predefined_of_window(Window& window, int keyval) {
  switch (keyval) {
    case MPI_WIN_BASE:
      return window.base;
    case MPI_WIN_SIZE:
      return &window.size;
    case MPI_WIN_DISP_UNIT:
      return &window.unit;
    case MPI_WIN_CREATE_FLAVOR:
      return &window.flavor;
    default:
      return &window.model;
  }
}

int reject_predefined_of_window(int keyval) {
  if (!is_predefined_of_window(keyval)) return MPI_SUCCESS;
  return fail(MPI_ERR_KEYVAL, "a predefined attribute of a window cannot be changed");
}

}  // namespace

namespace calls {

int win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn, MPI_Win_delete_attr_function* win_delete_attr_fn,
                      int* win_keyval, void* extra_state) {
  return new_keyval<MPI_Win>(win_copy_attr_fn, win_delete_attr_fn, extra_state, win_keyval);
}

int win_free_keyval(int* win_keyval) { return free_keyval(ObjectKind::window, win_keyval); }

int win_set_attr(Window& win, int win_keyval, void* attribute_val) {
  const int code = reject_predefined_of_window(win_keyval);
  return code == MPI_SUCCESS ? win.attributes.set(win.handle, win_keyval, attribute_val) : code;
}

int win_get_attr(Window& win, int win_keyval, void* attribute_val, int* flag) {
  if (!is_predefined_of_window(win_keyval)) return win.attributes.get(win.handle, win_keyval, attribute_val, flag);
  void* const attribute = predefined_of_window(win, win_keyval);
  *flag = 1;
  std::memcpy(attribute_val, &attribute, sizeof attribute);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}

int win_delete_attr(Window& win, int win_keyval) {
  const int code = reject_predefined_of_window(win_keyval);
  return code == MPI_SUCCESS ? win.attributes.remove(win.handle, win_keyval) : code;
}

int win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler) {
  return new_error_handler<MPI_Win>(win_errhandler_fn, errhandler);
}

int win_set_errhandler(Window& win, MPI_Errhandler errhandler) {
  return win.comm->error_handler().set(ObjectKind::window, errhandler);
}

int win_get_errhandler(Window& win, MPI_Errhandler* errhandler) {
  *errhandler = win.comm->error_handler().share();
  return MPI_SUCCESS;
}

int win_call_errhandler(Window& win, int errorcode) {
  report_error("MPI_Win_call_errhandler", errorcode, win.comm->error_target());
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
