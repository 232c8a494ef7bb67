// SPDX-License-Identifier: BSD-3-Clause
//
// The check that MPI runs, and the reaction of error handlers.
#include "starpu_glue/mpi/communicators/call.hpp"

#include "starpu_glue/mpi/communicators/communicator.hpp"

namespace canele::mpi {

Call::Call(Function function) : Call(function, 0) {
  if (engine() != nullptr || in_child) return;
  fatal("%s was called %s, and without a session", function_,
        phase() == Phase::before ? "before MPI_Init" : "after MPI_Finalize");
}

ErrorTarget Call::target_of(const Communicator* comm) {
  if (comm == nullptr) comm = world();
  return comm == nullptr ? ErrorTarget{MPI_ERRORS_ARE_FATAL, nullptr} : comm->error_target();
}

void report_error(const char* function, int code, const ErrorTarget& target) {
  if (target.handler == MPI_ERRORS_RETURN || call_error_handler(target, code)) return;
  if (target.handler != MPI_ERRORS_ARE_FATAL && target.handler != MPI_ERRORS_ABORT) return;  // it was freed meanwhile
  char text[MPI_MAX_ERROR_STRING];
  describe_error(code, text, sizeof text);
  fatal("%s failed: %s", function, text);
}

}  // namespace canele::mpi
