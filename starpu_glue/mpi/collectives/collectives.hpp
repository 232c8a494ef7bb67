// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: from the arguments of an MPI call to the engine's collective on the communicator's group.
//
// A blocking MPI call starts the collective without a request, and the engine returns when it has ended. A persistent
// one is planned instead: what its calls would pass to the engine is kept. All forms therefore check the same things,
// in the same place. As MPI says, one call at a time per communicator; any thread.
#pragma once

#include <canele/collectives.h>

#include <utility>
#include <vector>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/integers.hpp"
#include "starpu_glue/mpi/datatypes/staging.hpp"

namespace canele::mpi {

[[gnu::cold]] int from_collective_error(int error);
/// Translates the engine's result: whether the collective has started or, for a blocking one, how it has ended.
[[gnu::always_inline]] inline int from_collective(int error) {
  return error == CANELE_OK ? MPI_SUCCESS : from_collective_error(error);
}

/// Where and how the engine carries a collective out.
struct Execution {
  canele_group_t* group;
  const canele_collective_options_t* options;
  canele_request_t* request;  ///< nullptr: the call blocks until the collective has ended
};

/// Where a collective is started, and the objects that keep what it needs.
struct Start {
  Communicator& comm;
  canele_request_t* request;
  Staging* staging;
  const canele_collective_options_t* options = nullptr;

  /// Takes this rank's turn without a part in the collective, which then fails on all ranks.
  void skip(int error) const { canele_group_skip(comm.group(), error); }
  /// Calls the engine: begin(Execution) returns what the engine returns.
  template <class Begin>
  [[gnu::always_inline]] int begin(const Begin& begin) const {
    return from_collective(begin(Execution{comm.group(), options, request}));
  }
  /// Like begin(), with data that begin(data, Execution) gets, and that only a plan copies.
  template <class Data, class Begin>
  [[gnu::always_inline]] int begin_with(const Data& data, const Begin& begin) const {
    return from_collective(begin(data, Execution{comm.group(), options, request}));
  }
};

/// Returned by the functions below if they need `staging` and have none. The call has had no effect.
constexpr int kNeedsStaging = -1;

/// Data as a call names it: `count` elements, for one rank or for each rank.
struct CallBuffer {
  const void* memory;
  MPI_Count count;
  MPI_Datatype type;
};

/// Data with a count and a displacement for each rank, as the calls with a v name it. If `types` is given (w calls), it
/// is used instead of `type`, and the displacements are in bytes.
struct CallBufferV {
  const void* memory;
  Integers counts;
  Integers places;
  MPI_Datatype type;
  const MPI_Datatype* types = nullptr;
};

/// Check what a call describes, as one block for each of `ranks` ranks. They return MPI codes.
int resolve(const CallBuffer& asked, int ranks, Blocks* blocks);
int resolve(const CallBufferV& asked, int ranks, Blocks* blocks);
/// Check the counts of a reduction whose result is scattered over `ranks` ranks, and add them up.
int take_counts(const Integers& counts, int ranks, std::vector<std::size_t>* lengths, std::int64_t* sum);
int multiply_count(std::int64_t count, int ranks, std::int64_t* sum);

/// All of these return MPI codes. `How` is Start or Plan (plan.hpp). On success the request is in progress, or the
/// collective is planned or, without a request, has ended. `own` is the block of this rank; `all` has one block for
/// each rank. Arguments that MPI declares not significant on a rank (the receive buffer of a rank that is not the root)
/// are not read.
template <class How>
int start_barrier(const How& start) {
  return start.begin([](const Execution& at) { return canele_ibarrier(at.group, at.options, at.request); });
}
template <class How>
int start_bcast(const How& start, CallBuffer data, int root);
template <class How>
int start_gather(const How& start, CallBuffer own, CallBuffer all, int root);
template <class How>
int start_gatherv(const How& start, CallBuffer own, const CallBufferV& all, int root);
template <class How>
int start_scatter(const How& start, CallBuffer all, CallBuffer own, int root);
template <class How>
int start_scatterv(const How& start, const CallBufferV& all, CallBuffer own, int root);
template <class How>
int start_allgather(const How& start, CallBuffer own, CallBuffer all);
template <class How>
int start_allgatherv(const How& start, CallBuffer own, const CallBufferV& all);
template <class How>
int start_alltoall(const How& start, CallBuffer send, CallBuffer receive);
template <class How>
int start_alltoallv(const How& start, const CallBufferV& send, const CallBufferV& receive);
template <class How>
int start_alltoallw(const How& start, const CallBufferV& send, const CallBufferV& receive) {
  return start_alltoallv(start, send, receive);
}

template <class How>
int start_reduce(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 int root);
template <class How>
int start_allreduce(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op);
template <class How>
int start_reduce_scatter(const How& start, const void* send, void* receive, const Integers& counts, MPI_Datatype type,
                         MPI_Op op);
template <class How>
int start_reduce_scatter_block(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                               MPI_Op op);
template <class How>
int start_scan(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op);
template <class How>
int start_exscan(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op);

}  // namespace canele::mpi
