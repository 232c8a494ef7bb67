// SPDX-License-Identifier: BSD-3-Clause
//
// Intercommunicators: made of two groups of ranks, and merged into one. They return MPI codes. Any thread.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/communicators/communicator.hpp"

namespace canele::mpi {

/// Implements MPI_Intercomm_create. The leaders of both groups meet in `peer`, which the other ranks do not read.
///
///     local_comm        leader ◀── who, how many, which ranks ──▶ leader        the other local_comm
///        ranks ◀── what the leader has heard ──┘                    └──▶ ranks
int create_inter(Communicator& local_comm, int local_leader, MPI_Comm peer, int remote_leader, int tag, MPI_Comm* made);

/// Implements MPI_Intercomm_create_from_groups. Only the leader reads the remote group. `own_leader` is a rank of
/// `own`.
int create_inter_from_groups(const RanksPointer& own, int own_leader, MPI_Group remote, int remote_leader,
                             const char* tag, MPI_Errhandler handler, MPI_Comm* made);

/// Implements MPI_Intercomm_merge: the ranks that say `high` come last. If both groups say the same, the lower group
/// comes first.
int merge(Communicator& inter, bool high, MPI_Comm* made);

}  // namespace canele::mpi
