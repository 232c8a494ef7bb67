// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations on windows: from the arguments of an MPI call to the engine's operations.
//
// Called by api_access.cpp. Any thread. An operation is posted without a completion, and a flush of window_sync waits
// for it. With a request, the request waits for it.
//
//     one block at the target           one operation of the engine; the program's data goes as it is, also with gaps
//     equal blocks at equal distances   one strided operation
//     any other layout                  one operation for each block
//
// Data with gaps is described to the engine, not copied. The window keeps the description until the next flush.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// Data of this rank, as a call names it.
struct OriginData {
  const void* memory;
  MPI_Count count;
  MPI_Datatype type;
};

/// Data of a target, as a call names it.
struct TargetData {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

/// The completion of an operation with a request.
struct AccessRequest {
  canele_request_t* request;
  bool is_posted = false;  ///< false on success: there was nothing to do
};

/// They return MPI codes. `request` may be nullptr.
int put(Window& window, const OriginData& origin, const TargetData& target, AccessRequest* request);
int get(Window& window, const OriginData& origin, const TargetData& target, AccessRequest* request);

/// One element of a predefined type. `result` gets what it was before.
int fetch_and_op(Window& window, const void* origin, void* result, const TargetData& target, MPI_Op op);
int compare_and_swap(Window& window, const void* origin, const void* compare, void* result, const TargetData& target);

/// Finds the engine's operation on a word of 4 or 8 bytes for an operator. Returns false if there is none.
bool find_word_operation(MPI_Op op, const Type& type, canele_atomic_operation* operation);
/// Returns whether MPI_Compare_and_swap takes elements of the type.
bool can_be_compared(const Type& type);
/// Returns the word of 4 or 8 bytes at an address, as canele_atomic takes it.
std::uint64_t word_at(const void* address, std::size_t size);

}  // namespace canele::mpi
