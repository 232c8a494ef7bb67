// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers that the program makes for windows.
//
// Called by api_attribute.cpp, api_window.cpp and api_access.cpp. Any thread: one lock guards all handlers. The
// program's function is called without a lock. A handler lives as long as the program or a window has it.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// They return MPI codes.
int new_error_handler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler);
int free_error_handler(MPI_Errhandler* handler);
/// Gives the window another handler, predefined or made by the program.
int set_error_handler(const Window& window, MPI_Errhandler handler);
/// Returns the window's handler. The program frees it.
MPI_Errhandler get_error_handler(const Window& window);
/// Takes the window's handler away: the window is about to end.
void drop_error_handler(const Window& window);

/// Calls the program's function for an error of the window. Returns false if its handler is a predefined one.
bool call_error_handler(const Window& window, int code);

/// Ends a call on a window like Call::end. The window may be nullptr.
inline int end_on_window(const Call& call, int code, const Window* window) {
  if (code == MPI_SUCCESS || window == nullptr) return call.end(code);
  return call_error_handler(*window, code) ? code : call.end(code, window->comm);
}

}  // namespace canele::mpi
