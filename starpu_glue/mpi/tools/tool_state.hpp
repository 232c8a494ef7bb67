// SPDX-License-Identifier: BSD-3-Clause
//
// The tool interface as a whole: how often it was started, the lock of its objects, texts that it returns.
//
// Any thread, also before MPI_Init and after MPI_Finalize. Functions return codes of the tool interface, and call no
// error handler. No counter of the engine is read under the lock: a callback of the engine may call a tool.
#pragma once

#include <mpi.h>

#include <mutex>
#include <new>
#include <string_view>

#include "starpu_glue/mpi/core/names.hpp"

namespace canele::mpi::tools {

/// Guards all handles, sessions and settings that a tool has written.
extern constinit std::mutex lock;

bool is_started();

/// Performs a call of a tool.
template <class Perform>
int perform(bool starts, Perform call) {
  if (!starts && !is_started()) return MPI_T_ERR_NOT_INITIALIZED;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return MPI_T_ERR_MEMORY;
  }
}

/// Gives a tool a text: what fits, and the length that it needs. Both may be NULL.
void give_text(std::string_view text, char* buffer, int* length);

/// Gives a tool a value, if it wants it.
template <class Value>
void give(Value* place, Value value) {
  if (place != nullptr) *place = value;
}

}  // namespace canele::mpi::tools
