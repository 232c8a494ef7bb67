// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of the MPI subset: a code with a detail for the calling thread, and the error handler's reaction.
//
// Any thread; the detail is kept per thread. A code is its error class. MPI_Error_string adds the detail if the calling
// thread's last error had that code.
#pragma once

#include <mpi.h>

#include <initializer_list>

#include "starpu_glue/mpi/profile.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {

/// Keeps the detail (printf format: what was wrong, what is expected) and returns `code`.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

/// A pointer argument of the program.
struct Argument {
  const char* name;
  const void* value;
};
/// Returns MPI_ERR_ARG if one of the arguments is NULL.
int given(std::initializer_list<Argument> arguments);

/// Returns the MPI code for a CANELE_E... code (MPI_SUCCESS for CANELE_OK); keeps canele_error_detail() as the detail.
int from_engine(int error);

/// Translates the error found in a status, like from_engine. The call itself did not fail, so this function makes the
/// detail.
int from_status(int error, int source);

/// Returns one line that names an error class.
const char* error_text(int code);

/// Writes "MPI_ERR_RANK: no such rank: destination 9 ...", at most `size` bytes with the final NUL.
void describe_error(int code, char* text, int size);

/// Prints "canele: rank r: <text>" on stderr and ends the job (through the launcher if the engine runs).
[[noreturn, gnu::format(printf, 1, 2)]] void fatal(const char* format, ...);

/// Writes the text to stderr unchanged. Suppresses the SIGPIPE of a closed reader, which would end the program.
bool say(const char* text);
/// Prints a warning on stderr.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);

class Communicator;

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
    return code == MPI_SUCCESS ? code : end_with(code, handler_of(comm));
  }
  /// Like end(), for callers whose communicator may no longer exist.
  int end_with(int code, MPI_Errhandler handler) const {
    if (code != MPI_SUCCESS && handler == MPI_ERRORS_ARE_FATAL) end_job(code);
    return code;
  }

 private:
  Call(Function function, int) : profiled_(function), function_(function.name()) {}
  static MPI_Errhandler handler_of(const Communicator* comm);
  [[noreturn]] void end_job(int code) const;

  profile::Profiled profiled_;  // first, so that the profile covers the whole call
  const char* function_;
};

}  // namespace canele::mpi
