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

#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/core/objects.hpp"

namespace canele::mpi {

/// Returns the function for intercommunicators that belongs to one of the functions start_... of collectives.hpp, and
/// has its arguments. `How` is Start or Plan.
template <class How>
AnyFunction find_between_groups(AnyFunction start);

/// Starts or plans a collective on a communicator of any kind. On an intercommunicator it needs its staging and, if it
/// is started, a request. Returns an MPI code. Throws std::bad_alloc.
template <class How, class... Parameters, class... Arguments>
int start_anywhere(const How& how, int (*start)(const How&, Parameters...), const Arguments&... arguments) {
  if (how.comm.inter() == nullptr) return start(how, arguments...);
  return restore<int(const How&, Parameters...)>(find_between_groups<How>(erase(start)))(how, arguments...);
}

}  // namespace canele::mpi
