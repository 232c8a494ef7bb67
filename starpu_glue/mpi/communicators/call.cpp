// SPDX-License-Identifier: BSD-3-Clause
//
// The check that MPI runs, and the reaction of error handlers.
#include "starpu_glue/mpi/communicators/call.hpp"

#include "starpu_glue/mpi/communicators/communicator.hpp"

namespace canele::mpi {

Call::Call(Function function) : Call(function, 0) {
  const Phase now = phase();
  if (now == Phase::running || in_child) return;
  fatal("%s was called %s", function_, now == Phase::before ? "before MPI_Init" : "after MPI_Finalize");
}

MPI_Errhandler Call::handler_of(const Communicator* comm) {
  if (comm == nullptr) comm = world();
  return comm == nullptr ? MPI_ERRORS_ARE_FATAL : comm->error_handler();
}

void Call::end_job(int code) const {
  char text[MPI_MAX_ERROR_STRING];
  describe_error(code, text, sizeof text);
  fatal("%s failed: %s", function_, text);
}

}  // namespace canele::mpi
