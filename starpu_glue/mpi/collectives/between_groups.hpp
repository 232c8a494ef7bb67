// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on intercommunicators: between the two groups.
//
// What moves data is an exchange with neighbours among all ranks of both groups. A rank sends to, and receives from,
// ranks of the other group only. A reduction has two steps, because its result is wanted where its operands are not:
//
//     lower group:  reduce or allreduce ──▶ result ──╲  ╱── result ◀── reduce or allreduce  :upper group
//                   the lower ranks get              ◀╱  ╲▶             the upper ranks get
//
// The event that ends the first step sends the result. So both steps proceed without the thread that has begun them.
// The messages carry the number of the reduction as their tag. Any thread; one call at a time per communicator.
//
// Rejected: the second step as a broadcast in the other group. Ranks must start the collectives of a group in one
// order, but messages of several reductions may arrive in any.
#pragma once

#include <new>

#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/objects.hpp"

namespace canele::mpi {

/// Returns the function for intercommunicators that belongs to one of the functions start_... of collectives.hpp, and
/// has its arguments.
AnyFunction find_between_groups(AnyFunction start);

/// Starts a collective on an intercommunicator. `start` needs its request and its staging. Returns an MPI code.
template <class... Parameters, class... Arguments>
int start_between_groups(const Start& with, int (*start)(const Start&, Parameters...), const Arguments&... arguments) {
  auto* const found = restore<int(const Start&, Parameters...)>(find_between_groups(erase(start)));
  try {
    return found(with, arguments...);
  } catch (const std::bad_alloc&) {
    return fail(MPI_ERR_NO_MEM, "no memory");
  }
}

}  // namespace canele::mpi
