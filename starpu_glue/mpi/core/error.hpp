// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of the MPI layer: a code with a detail for the calling thread.
//
// Any thread; the detail is kept per thread. A code is its error class. MPI_Error_string adds the detail if the calling
// thread's last error had that code.
#pragma once

#include <mpi.h>

#include <initializer_list>
#include <new>

namespace canele::mpi {

/// Keeps the detail (printf format: what was wrong, what is expected) and returns `code`.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

/// Performs a call. Memory that runs out in it is an error of the call: no exception may leave the library.
template <class Perform>
[[gnu::always_inline]] inline int without_memory_error(Perform perform) {
  try {
    return perform();
  } catch (const std::bad_alloc&) {
    return fail(MPI_ERR_NO_MEM, "no memory");
  }
}

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

}  // namespace canele::mpi
