// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers, predefined or made by the program, and the one that an object has.
//
// Used by communicators, and by windows through the communicator of each. Any thread: one lock guards all handlers of
// the program. Its functions are called without the lock. Such a handler lives as long as the program or an object
// has it.
#pragma once

#include <atomic>

#include "starpu_glue/mpi/core/objects.hpp"

namespace canele::mpi {

/// What an error of an object is reported to. A call copies it before the object may end.
struct ErrorTarget {
  MPI_Errhandler handler;
  void* object;  ///< its handle, for the program's function
};

/// They return MPI codes.
int add_error_handler(ObjectKind kind, AnyFunction function, MPI_Errhandler* handler);
int free_error_handler(MPI_Errhandler* handler);

template <class Handle>
int new_error_handler(ErrorFunction<Handle>* function, MPI_Errhandler* handler) {
  return add_error_handler(kKindOf<Handle>, erase(function), handler);
}

/// Calls the program's function. Returns false if the handler is none of the program.
bool call_error_handler(const ErrorTarget& target, int code);

/// The error handler of an object.
class ErrorHandlerUse {
 public:
  ErrorHandlerUse() = default;
  ~ErrorHandlerUse();
  ErrorHandlerUse(const ErrorHandlerUse&) = delete;
  ErrorHandlerUse& operator=(const ErrorHandlerUse&) = delete;

  MPI_Errhandler get() const { return handler_.load(std::memory_order_relaxed); }
  /// Takes another handler for an object of this kind. Returns an MPI code.
  int set(ObjectKind kind, MPI_Errhandler handler);
  /// Takes the handler of another object.
  void inherit(const ErrorHandlerUse& other);
  /// Returns the handler. The program frees it.
  MPI_Errhandler share() const;

 private:
  std::atomic<MPI_Errhandler> handler_{MPI_ERRORS_ARE_FATAL};
};

}  // namespace canele::mpi
