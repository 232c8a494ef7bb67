// SPDX-License-Identifier: BSD-3-Clause
//
// Included by the generated entry points only: checks of arguments that need no object. Any thread.
#pragma once

#include <climits>
#include <cstdint>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/communicators/session.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/core/names.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// Checks the length of an array.
inline int check_length(const char* name, int length) {
  return length >= 0 ? MPI_SUCCESS : fail(MPI_ERR_ARG, "%s is %d; expected: at least 0", name, length);
}

/// Checks a number of elements.
inline int check_count(const char* name, MPI_Count count) {
  if (count >= 0) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "%s is %lld; expected: at least 0", name, static_cast<long long>(count));
}

/// Returns the communicator of an argument that may be replaced; nullptr if there is none.
inline const Communicator* comm_behind(const MPI_Comm* handle) {
  return handle == nullptr ? nullptr : find_communicator(*handle);
}

/// Returns the session of an argument that may be replaced; nullptr if there is none.
inline const Session* session_behind(const MPI_Session* handle) {
  return handle == nullptr ? nullptr : find_session(*handle);
}

/// Ends a call by the error handler of a session; nullptr: by that of MPI_COMM_WORLD.
inline int end_with_session(const Call& call, int code, const Session* session) {
  return session == nullptr ? call.end(code) : call.end_with(code, session->error_target());
}

/// Returns an output of a function in the type of its form without _c: MPI_UNDEFINED if it does not fit.
template <class Narrow>
Narrow narrow(std::int64_t value) {
  if (sizeof(Narrow) < sizeof value && (value > INT_MAX || value < INT_MIN)) return MPI_UNDEFINED;
  return static_cast<Narrow>(value);
}

}  // namespace canele::mpi
