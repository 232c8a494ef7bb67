// SPDX-License-Identifier: BSD-3-Clause
//
// Attributes and error handlers of windows. Called from any thread.
//
// Windows are never duplicated, so copy functions of attributes are never called.
#include <cstring>

#include "starpu_glue/mpi/windows/api_window.hpp"
#include "starpu_glue/mpi/windows/attributes.hpp"

namespace canele::mpi {
namespace {

bool is_predefined_keyval(int keyval) { return keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL; }

/// Returns what a predefined attribute of a window points to.
void* predefined_attribute(Window& window, int keyval) {
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

int get_attribute(Window& window, int keyval, void** value, int* flag) {
  if (!is_predefined_keyval(keyval)) return find_attribute(window, keyval, value, flag);
  *value = predefined_attribute(window, keyval);
  *flag = 1;
  return MPI_SUCCESS;
}

int reject_predefined(int keyval) {
  if (!is_predefined_keyval(keyval)) return MPI_SUCCESS;
  return fail(MPI_ERR_KEYVAL, "a predefined attribute cannot be changed");
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Win_create_keyval(MPI_Win_copy_attr_function*, MPI_Win_delete_attr_function* on_delete, int* keyval,
                                      void* extra) {
  const Call call("MPI_Win_create_keyval");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"keyval", keyval}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(new_keyval(on_delete, extra, keyval));
}
CANELE_MPI_NAME(Win_create_keyval);

extern "C" int PMPI_Win_free_keyval(int* keyval) {
  const Call call("MPI_Win_free_keyval");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"keyval", keyval}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(free_keyval(keyval));
}
CANELE_MPI_NAME(Win_free_keyval);

extern "C" int PMPI_Win_set_attr(MPI_Win window, int keyval, void* value) {
  return with_window("MPI_Win_set_attr", window, [&](Window& w) {
    const int code = reject_predefined(keyval);
    return code == MPI_SUCCESS ? set_attribute(w, keyval, value) : code;
  });
}
CANELE_MPI_NAME(Win_set_attr);

extern "C" int PMPI_Win_get_attr(MPI_Win window, int keyval, void* value, int* flag) {
  return with_window("MPI_Win_get_attr", window, [&](Window& w) {
    int code = given({{"value", value}, {"flag", flag}});
    void* found = nullptr;
    if (code == MPI_SUCCESS) code = get_attribute(w, keyval, &found, flag);
    if (code == MPI_SUCCESS && *flag != 0)
      std::memcpy(value, &found, sizeof found);  // the caller gives the address of a pointer
    return code;
  });
}
CANELE_MPI_NAME(Win_get_attr);

extern "C" int PMPI_Win_delete_attr(MPI_Win window, int keyval) {
  return with_window("MPI_Win_delete_attr", window, [&](Window& w) {
    const int code = reject_predefined(keyval);
    return code == MPI_SUCCESS ? delete_attribute(w, keyval) : code;
  });
}
CANELE_MPI_NAME(Win_delete_attr);

extern "C" int PMPI_Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler) {
  const Call call("MPI_Win_create_errhandler");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"function", reinterpret_cast<const void*>(function)}, {"handler", handler}});
      code != MPI_SUCCESS)
    return call.end(code);
  return call.end(new_error_handler(function, handler));
}
CANELE_MPI_NAME(Win_create_errhandler);

extern "C" int PMPI_Win_set_errhandler(MPI_Win window, MPI_Errhandler handler) {
  return with_window("MPI_Win_set_errhandler", window, [&](const Window& w) { return set_error_handler(w, handler); });
}
CANELE_MPI_NAME(Win_set_errhandler);

extern "C" int PMPI_Win_get_errhandler(MPI_Win window, MPI_Errhandler* handler) {
  return with_window("MPI_Win_get_errhandler", window, [&](const Window& w) {
    const int code = given({{"handler", handler}});
    if (code == MPI_SUCCESS) *handler = get_error_handler(w);
    return code;
  });
}
CANELE_MPI_NAME(Win_get_errhandler);

extern "C" int PMPI_Win_call_errhandler(MPI_Win window, int code) {
  const Call call("MPI_Win_call_errhandler");
  if (call.rejected()) return call.end(reject_in_child());
  Window* found = nullptr;
  if (const int wrong = get_window(window, &found); wrong != MPI_SUCCESS) return call.end(wrong);
  end_on_window(call, code, found);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Win_call_errhandler);

extern "C" int PMPI_Errhandler_free(MPI_Errhandler* handler) {
  const Call call("MPI_Errhandler_free");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"handler", handler}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(free_error_handler(handler));
}
CANELE_MPI_NAME(Errhandler_free);
