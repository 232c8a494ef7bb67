// SPDX-License-Identifier: BSD-3-Clause
//
// Call: what all MPI functions do at their begin and at their end. Any thread.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/error_handlers.hpp"
#include "starpu_glue/mpi/core/names.hpp"
#include "starpu_glue/mpi/core/profile.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {

class Communicator;

/// Does what the error handler says: ends the job, calls the program's function, or nothing.
void report_error(const char* function, int code, const ErrorTarget& target);

/// One MPI call. Checks that MPI runs, names the function in errors and in the profile, and applies the error handler
/// at the end.
class Call {
 public:
  explicit Call(Function function);
  /// For calls that are legal at any time.
  static Call any_time(Function function) { return Call(function, 0); }

  /// Returns true in the child of a fork: the call must return end(reject_in_child()).
  bool rejected() const { return in_child; }

  /// Applies the communicator's error handler (null: MPI_COMM_WORLD's) if `code` is an error. Returns `code`.
  int end(int code, const Communicator* comm = nullptr) const {
    return code == MPI_SUCCESS ? code : end_with(code, target_of(comm));
  }
  /// Like end(), for callers whose communicator may no longer exist. The program's function may leave by longjmp: this
  /// is the last thing that a call does.
  int end_with(int code, const ErrorTarget& target) const {
    if (code != MPI_SUCCESS) report_error(function_, code, target);
    return code;
  }

 private:
  Call(Function function, int) : profiled_(function), function_(function.name()) {}
  static ErrorTarget target_of(const Communicator* comm);

  profile::Profiled profiled_;  // first, so that the profile covers the whole call
  const char* function_;
};

}  // namespace canele::mpi
