// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: plain tree and linear algorithms over a communicator's collective session.
//
// Who: MPI_Barrier to MPI_Alltoall, making of communicators. Threads: as MPI says: one call at a time per communicator.
// Surprise: reductions always combine in rank order up a tree rooted at rank 0, whatever the root: the same bits come
//     out in every run.
#pragma once

#include "starpu_glue/mpi/communicator.hpp"
#include "starpu_glue/mpi/operation.hpp"
#include "starpu_glue/mpi/transfer.hpp"

namespace canele::mpi {

/// All return MPI codes and block. A Buffer whose memory is MPI_IN_PLACE means what MPI says.
int barrier(Communicator& comm);
int broadcast(Communicator& comm, const Buffer& buffer, int root);
int reduce(Communicator& comm, const Buffer& send, const Buffer& receive, const Operator& op, int root);
int allreduce(Communicator& comm, const Buffer& send, const Buffer& receive, const Operator& op);
/// `receive` and (scatter, alltoall) `send` describe the part of one rank.
int gather(Communicator& comm, const Buffer& send, const Buffer& receive, int root);
int scatter(Communicator& comm, const Buffer& send, const Buffer& receive, int root);
int allgather(Communicator& comm, const Buffer& send, const Buffer& receive);
int alltoall(Communicator& comm, const Buffer& send, const Buffer& receive);

inline bool in_place(const Buffer& buffer) { return buffer.memory == MPI_IN_PLACE; }

}  // namespace canele::mpi
