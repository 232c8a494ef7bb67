// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions on intercommunicators, see between_groups.hpp. They have the arguments of the functions start_... in
// collectives.hpp, and return MPI codes. Any thread; one call at a time per communicator.
#pragma once

#include "starpu_glue/mpi/collectives/collectives.hpp"

namespace canele::mpi {

/// Checks the root of a call on an intercommunicator.
int check_root_between(const Communicator& comm, int root);

template <class How>
int reduce_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   int root);
template <class How>
int allreduce_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op);
template <class How>
int reduce_scatter_between(const How& start, const void* send, void* receive, const Integers& counts, MPI_Datatype type,
                           MPI_Op op);
template <class How>
int reduce_scatter_block_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                                 MPI_Op op);

}  // namespace canele::mpi
