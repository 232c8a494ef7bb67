// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers of windows.
#include "starpu_glue/mpi/windows/error_handler.hpp"

#include <mutex>

namespace canele::mpi {
namespace {

struct ErrorHandler {
  MPI_Win_errhandler_function* function = nullptr;
  int uses = 0;  ///< windows, and the handles that the program has not freed
};

constinit HandlePool<ErrorHandler, MPI_Errhandler, Kind::error_handler, 1, 16> error_handlers_pool;
constinit std::mutex error_handlers_lock;

bool is_predefined(MPI_Errhandler handler) { return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN; }

/// Drops one use of a handler of the program. Under the lock.
void drop_use(MPI_Errhandler handler) {
  ErrorHandler* const found = error_handlers_pool.find(handler);
  if (found != nullptr && --found->uses == 0) error_handlers_pool.release(handler);
}

}  // namespace

int new_error_handler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler) {
  const std::lock_guard guard(error_handlers_lock);
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  ErrorHandler* const slot = error_handlers_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another error handler");
  *slot = {function, 1};
  *handler = made;
  return MPI_SUCCESS;
}

int free_error_handler(MPI_Errhandler* handler) {
  const std::lock_guard guard(error_handlers_lock);
  if (!is_predefined(*handler) && error_handlers_pool.find(*handler) == nullptr)
    return fail(MPI_ERR_ARG, "0x%zx is not an error handler, or was freed", handle_bits(*handler));
  drop_use(*handler);
  *handler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

int set_error_handler(const Window& window, MPI_Errhandler handler) {
  const std::lock_guard guard(error_handlers_lock);
  ErrorHandler* const made = error_handlers_pool.find(handler);
  if (made == nullptr && !is_predefined(handler))
    return fail(MPI_ERR_ARG,
                "0x%zx is not an error handler; expected: one of MPI_Win_create_errhandler, MPI_ERRORS_ARE_FATAL or "
                "MPI_ERRORS_RETURN",
                handle_bits(handler));
  if (made != nullptr) ++made->uses;
  drop_use(window.comm->error_handler());
  window.comm->set_error_handler(handler);
  return MPI_SUCCESS;
}

MPI_Errhandler get_error_handler(const Window& window) {
  const std::lock_guard guard(error_handlers_lock);
  const MPI_Errhandler handler = window.comm->error_handler();
  if (ErrorHandler* const made = error_handlers_pool.find(handler)) ++made->uses;
  return handler;
}

void drop_error_handler(const Window& window) {
  const std::lock_guard guard(error_handlers_lock);
  const MPI_Errhandler handler = window.comm->error_handler();
  if (is_predefined(handler)) return;
  drop_use(handler);
  window.comm->set_error_handler(MPI_ERRORS_RETURN);  // for requests that are still in progress
}

bool call_error_handler(const Window& window, int code) {
  MPI_Win_errhandler_function* function = nullptr;
  {
    const std::lock_guard guard(error_handlers_lock);
    const ErrorHandler* const made = error_handlers_pool.find(window.comm->error_handler());
    if (made == nullptr) return false;
    function = made->function;
  }
  MPI_Win handle = window.handle;
  function(&handle, &code);
  return true;
}

}  // namespace canele::mpi
