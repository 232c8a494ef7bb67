// SPDX-License-Identifier: BSD-3-Clause
//
// What the MPI functions on a window have in common. Shared by the api_*.cpp of this folder. Any thread.
#pragma once

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/access.hpp"
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

/// Makes a window for the ranks of a communicator, and writes its handle, and its address if `base` is given.
int make_window(Function function, MPI_Comm comm, const WindowRequest& request, void* base, MPI_Win* handle);

/// Starts one operation with a request: perform(window, &request).
template <class Perform>
int start_access(Function function, MPI_Win handle, MPI_Request* request, Perform perform) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", request}}); code != MPI_SUCCESS) return call.end(code);
  Window* window = nullptr;
  if (const int code = get_window(handle, &window); code != MPI_SUCCESS) return call.end(code);
  Request* made = nullptr;
  int code = new_access(*window->comm, &made);
  if (code != MPI_SUCCESS) return call.end(code, comm_of(window));
  AccessRequest access{&made->engine};
  code = perform(*window, &access);
  if (!access.is_posted) made->flags |= Request::proc_null;
  return call.end(publish_request(*made, code, request), comm_of(window));
}

}  // namespace canele::mpi
