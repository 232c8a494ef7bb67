// SPDX-License-Identifier: BSD-3-Clause
//
// What the MPI functions on a window have in common. Shared by the api_*.cpp of this folder. Any thread.
#pragma once

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// Performs one MPI function on the window of a live handle: perform(window) returns its MPI code.
template <class Perform>
int with_window(Function function, MPI_Win handle, Perform perform) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Window* window = nullptr;
  int code = get_window(handle, &window);
  if (code == MPI_SUCCESS) code = perform(*window);
  return call.end(code, comm_of(window));
}

/// The same for functions that may block. They are rejected inside a completion callback.
template <class Perform>
int with_window_blocking(Function function, MPI_Win handle, Perform perform) {
  return with_window(function, handle, [&](Window& window) {
    const int code = may_block();
    return code == MPI_SUCCESS ? perform(window) : code;
  });
}

}  // namespace canele::mpi
