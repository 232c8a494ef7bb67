// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: from the arguments of an MPI call to the engine's collective on the communicator's group.
//
// A blocking MPI call starts the collective without a request, and the engine returns when it has ended. Both forms
// therefore check the same things, in the same place. As MPI says, one call at a time per communicator; any thread.
#pragma once

#include <canele/collectives.h>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/datatypes/staging.hpp"

namespace canele::mpi {

/// Where a collective is started, and the objects that keep what it needs.
struct Start {
  Communicator& comm;
  canele_request_t* request;  ///< nullptr: the call blocks until the collective has ended
  Staging* staging;
  const canele_collective_options_t* options = nullptr;
};

/// Returned by the functions below if they need `staging` and have none. The call has had no effect.
constexpr int kNeedsStaging = -1;

/// Data as a call names it: `count` elements, for one rank or for each rank.
struct CallBuffer {
  const void* memory;
  int count;
  MPI_Datatype type;
};

/// Data with a count and a displacement for each rank, as the calls with a v name it. If `types` is given (w calls), it
/// is used instead of `type`, and the displacements are in bytes.
struct CallBufferV {
  const void* memory;
  const int* counts;
  const int* places;
  MPI_Datatype type;
  const MPI_Datatype* types = nullptr;
};

[[gnu::cold]] int from_collective_error(int error);
/// Translates the engine's result: whether the collective has started or, for a blocking one, how it has ended.
[[gnu::always_inline]] inline int from_collective(int error) {
  return error == CANELE_OK ? MPI_SUCCESS : from_collective_error(error);
}

/// All of these return MPI codes. On success the request is in progress or, without a request, the collective has
/// ended. `own` is the block of this rank; `all` has one block for each rank. Arguments that MPI declares not
/// significant on a rank (the receive buffer of a rank that is not the root) are not read.
inline int start_barrier(const Start& start) {
  return from_collective(canele_ibarrier(start.comm.group(), start.options, start.request));
}
int start_bcast(const Start& start, CallBuffer data, int root);
int start_gather(const Start& start, CallBuffer own, CallBuffer all, int root);
int start_gatherv(const Start& start, CallBuffer own, CallBufferV all, int root);
int start_scatter(const Start& start, CallBuffer all, CallBuffer own, int root);
int start_scatterv(const Start& start, CallBufferV all, CallBuffer own, int root);
int start_allgather(const Start& start, CallBuffer own, CallBuffer all);
int start_allgatherv(const Start& start, CallBuffer own, CallBufferV all);
int start_alltoall(const Start& start, CallBuffer send, CallBuffer receive);
int start_alltoallv(const Start& start, CallBufferV send, CallBufferV receive);

int start_reduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                 int root);
int start_allreduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op);
int start_reduce_scatter(const Start& start, const void* send, void* receive, const int* counts, MPI_Datatype type,
                         MPI_Op op);
int start_reduce_scatter_block(const Start& start, const void* send, void* receive, int count, MPI_Datatype type,
                               MPI_Op op);
int start_scan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op);
int start_exscan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op);

}  // namespace canele::mpi
