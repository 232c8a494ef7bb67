// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Barrier to MPI_Exscan, and their non-blocking forms MPI_Ibarrier to MPI_Iexscan.
//
// A blocking call starts the collective without a request. Both forms call the same function of collectives.cpp. Called
// from any thread; as MPI requires, one collective at a time is started on a communicator.
#include "starpu_glue/mpi/collectives/between_groups.hpp"
#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

/// Runs the collective with copies between the program's memory and the engine's collective.
template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_staged(Communicator& comm, int (*start)(const Start&, Parameters...),
                                 const Arguments&... arguments) {
  Staging staging;
  const int code = start(Start{comm, nullptr, &staging, &blocking_options}, arguments...);
  if (code == MPI_SUCCESS) staging.deliver();
  return code;
}

/// Runs the collective on an intercommunicator, by its non-blocking form.
template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_between_groups(Communicator& comm, int (*start)(const Start&, Parameters...),
                                         const Arguments&... arguments) {
  Request* request = nullptr;
  MPI_Request handle = MPI_REQUEST_NULL;
  int code = new_collective(comm, &request);
  if (code != MPI_SUCCESS) return code;
  code = start_between_groups(Start{comm, &request->engine, &request->staging}, start, arguments...);
  code = publish_request(*request, code, &handle);
  return code == MPI_SUCCESS ? wait_and_finish(&handle, MPI_STATUS_IGNORE) : code;
}

template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_slow(Function function, MPI_Comm handle, int (*start)(const Start&, Parameters...),
                               const Arguments&... arguments) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Communicator* comm = nullptr;
  int code = get_communicator(handle, &comm);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code, comm);
  if (comm->inter() != nullptr) return call.end(run_between_groups(*comm, start, arguments...), comm);
  code = start(Start{*comm, nullptr, nullptr, &blocking_options}, arguments...);
  if (code == kNeedsStaging) code = run_staged(*comm, start, arguments...);
  return call.end(code, comm);
}

/// Applies the error handler after a call on the fast path has failed. Everything else has been done.
[[gnu::cold, gnu::noinline]] int end_with_error(Function function, int code, const Communicator& comm) {
  return Call(function).end(code, &comm);
}

/// Runs a blocking collective. On MPI_COMM_WORLD without a profile, only the collective itself has to run.
template <class... Parameters, class... Arguments>
[[gnu::always_inline]] inline int run_collective(Function function, MPI_Comm handle,
                                                 int (*start)(const Start&, Parameters...),
                                                 const Arguments&... arguments) {
  Communicator* const world = fast_world();
  if (world == nullptr || handle != MPI_COMM_WORLD || CallbackScope::here()) [[unlikely]]
    return run_slow(function, handle, start, arguments...);
  const int code = start(Start{*world, nullptr, nullptr, &blocking_options}, arguments...);
  if (code == MPI_SUCCESS) [[likely]]
    return code;
  if (code == kNeedsStaging) return run_slow(function, handle, start, arguments...);  // no effect so far
  return end_with_error(function, code, *world);
}

template <class... Parameters, class... Arguments>
int begin_collective(Function function, MPI_Comm handle, MPI_Request* made, int (*start)(const Start&, Parameters...),
                     Arguments... arguments) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Communicator* comm = nullptr;
  Request* request = nullptr;
  int code = given({{"request", made}});
  if (code == MPI_SUCCESS) code = get_communicator(handle, &comm);
  if (code == MPI_SUCCESS) code = new_collective(*comm, &request);
  if (code != MPI_SUCCESS) return call.end(code, comm);
  const Start with{*comm, &request->engine, &request->staging};
  code = comm->inter() == nullptr ? start(with, arguments...) : start_between_groups(with, start, arguments...);
  return call.end(publish_request(*request, code, made), comm);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Barrier(MPI_Comm comm) { return run_collective("MPI_Barrier", comm, start_barrier); }
CANELE_MPI_NAME(Barrier);

extern "C" int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ibarrier", comm, request, start_barrier);
}
CANELE_MPI_NAME(Ibarrier);

extern "C" int PMPI_Bcast(void* memory, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return run_collective("MPI_Bcast", comm, start_bcast, CallBuffer{memory, count, type}, root);
}
CANELE_MPI_NAME(Bcast);

extern "C" int PMPI_Ibcast(void* memory, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ibcast", comm, request, start_bcast, CallBuffer{memory, count, type}, root);
}
CANELE_MPI_NAME(Ibcast);

extern "C" int PMPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                           MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return run_collective("MPI_Gather", comm, start_gather, CallBuffer{send, send_count, send_type},
                        CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Gather);

extern "C" int PMPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                            MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Igather", comm, request, start_gather, CallBuffer{send, send_count, send_type},
                          CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Igather);

extern "C" int PMPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                            const int* receive_counts, const int* receive_places, MPI_Datatype receive_type, int root,
                            MPI_Comm comm) {
  return run_collective("MPI_Gatherv", comm, start_gatherv, CallBuffer{send, send_count, send_type},
                        CallBufferV{receive, receive_counts, receive_places, receive_type}, root);
}
CANELE_MPI_NAME(Gatherv);

extern "C" int PMPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                             const int* receive_counts, const int* receive_places, MPI_Datatype receive_type, int root,
                             MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Igatherv", comm, request, start_gatherv, CallBuffer{send, send_count, send_type},
                          CallBufferV{receive, receive_counts, receive_places, receive_type}, root);
}
CANELE_MPI_NAME(Igatherv);

extern "C" int PMPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                            MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return run_collective("MPI_Scatter", comm, start_scatter, CallBuffer{send, send_count, send_type},
                        CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Scatter);

extern "C" int PMPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                             MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Iscatter", comm, request, start_scatter, CallBuffer{send, send_count, send_type},
                          CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Iscatter);

extern "C" int PMPI_Scatterv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                             void* receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return run_collective("MPI_Scatterv", comm, start_scatterv, CallBufferV{send, send_counts, send_places, send_type},
                        CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Scatterv);

extern "C" int PMPI_Iscatterv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                              void* receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                              MPI_Request* request) {
  return begin_collective("MPI_Iscatterv", comm, request, start_scatterv,
                          CallBufferV{send, send_counts, send_places, send_type},
                          CallBuffer{receive, receive_count, receive_type}, root);
}
CANELE_MPI_NAME(Iscatterv);

extern "C" int PMPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                              int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return run_collective("MPI_Allgather", comm, start_allgather, CallBuffer{send, send_count, send_type},
                        CallBuffer{receive, receive_count, receive_type});
}
CANELE_MPI_NAME(Allgather);

extern "C" int PMPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                               int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Iallgather", comm, request, start_allgather, CallBuffer{send, send_count, send_type},
                          CallBuffer{receive, receive_count, receive_type});
}
CANELE_MPI_NAME(Iallgather);

extern "C" int PMPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                               const int* receive_counts, const int* receive_places, MPI_Datatype receive_type,
                               MPI_Comm comm) {
  return run_collective("MPI_Allgatherv", comm, start_allgatherv, CallBuffer{send, send_count, send_type},
                        CallBufferV{receive, receive_counts, receive_places, receive_type});
}
CANELE_MPI_NAME(Allgatherv);

extern "C" int PMPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                const int* receive_counts, const int* receive_places, MPI_Datatype receive_type,
                                MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Iallgatherv", comm, request, start_allgatherv, CallBuffer{send, send_count, send_type},
                          CallBufferV{receive, receive_counts, receive_places, receive_type});
}
CANELE_MPI_NAME(Iallgatherv);

extern "C" int PMPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                             MPI_Datatype receive_type, MPI_Comm comm) {
  return run_collective("MPI_Alltoall", comm, start_alltoall, CallBuffer{send, send_count, send_type},
                        CallBuffer{receive, receive_count, receive_type});
}
CANELE_MPI_NAME(Alltoall);

extern "C" int PMPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                              int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ialltoall", comm, request, start_alltoall, CallBuffer{send, send_count, send_type},
                          CallBuffer{receive, receive_count, receive_type});
}
CANELE_MPI_NAME(Ialltoall);

extern "C" int PMPI_Alltoallv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                              void* receive, const int* receive_counts, const int* receive_places,
                              MPI_Datatype receive_type, MPI_Comm comm) {
  return run_collective("MPI_Alltoallv", comm, start_alltoallv, CallBufferV{send, send_counts, send_places, send_type},
                        CallBufferV{receive, receive_counts, receive_places, receive_type});
}
CANELE_MPI_NAME(Alltoallv);

extern "C" int PMPI_Ialltoallv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                               void* receive, const int* receive_counts, const int* receive_places,
                               MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ialltoallv", comm, request, start_alltoallv,
                          CallBufferV{send, send_counts, send_places, send_type},
                          CallBufferV{receive, receive_counts, receive_places, receive_type});
}
CANELE_MPI_NAME(Ialltoallv);

extern "C" int PMPI_Alltoallw(const void* send, const int* send_counts, const int* send_places,
                              const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                              const int* receive_places, const MPI_Datatype* receive_types, MPI_Comm comm) {
  return run_collective("MPI_Alltoallw", comm, start_alltoallv,
                        CallBufferV{send, send_counts, send_places, MPI_DATATYPE_NULL, send_types},
                        CallBufferV{receive, receive_counts, receive_places, MPI_DATATYPE_NULL, receive_types});
}
CANELE_MPI_NAME(Alltoallw);

extern "C" int PMPI_Ialltoallw(const void* send, const int* send_counts, const int* send_places,
                               const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                               const int* receive_places, const MPI_Datatype* receive_types, MPI_Comm comm,
                               MPI_Request* request) {
  return begin_collective("MPI_Ialltoallw", comm, request, start_alltoallv,
                          CallBufferV{send, send_counts, send_places, MPI_DATATYPE_NULL, send_types},
                          CallBufferV{receive, receive_counts, receive_places, MPI_DATATYPE_NULL, receive_types});
}
CANELE_MPI_NAME(Ialltoallw);

extern "C" int PMPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                           MPI_Comm comm) {
  return run_collective("MPI_Reduce", comm, start_reduce, send, receive, count, type, op, root);
}
CANELE_MPI_NAME(Reduce);

extern "C" int PMPI_Ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                            MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ireduce", comm, request, start_reduce, send, receive, count, type, op, root);
}
CANELE_MPI_NAME(Ireduce);

extern "C" int PMPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return run_collective("MPI_Allreduce", comm, start_allreduce, send, receive, count, type, op);
}
CANELE_MPI_NAME(Allreduce);

extern "C" int PMPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                               MPI_Request* request) {
  return begin_collective("MPI_Iallreduce", comm, request, start_allreduce, send, receive, count, type, op);
}
CANELE_MPI_NAME(Iallreduce);

extern "C" int PMPI_Reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                                   MPI_Comm comm) {
  return run_collective("MPI_Reduce_scatter", comm, start_reduce_scatter, send, receive, counts, type, op);
}
CANELE_MPI_NAME(Reduce_scatter);

extern "C" int PMPI_Ireduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                                    MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ireduce_scatter", comm, request, start_reduce_scatter, send, receive, counts, type, op);
}
CANELE_MPI_NAME(Ireduce_scatter);

extern "C" int PMPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                                         MPI_Comm comm) {
  return run_collective("MPI_Reduce_scatter_block", comm, start_reduce_scatter_block, send, receive, count, type, op);
}
CANELE_MPI_NAME(Reduce_scatter_block);

extern "C" int PMPI_Ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                                          MPI_Comm comm, MPI_Request* request) {
  return begin_collective("MPI_Ireduce_scatter_block", comm, request, start_reduce_scatter_block, send, receive, count,
                          type, op);
}
CANELE_MPI_NAME(Ireduce_scatter_block);

extern "C" int PMPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return run_collective("MPI_Scan", comm, start_scan, send, receive, count, type, op);
}
CANELE_MPI_NAME(Scan);

extern "C" int PMPI_Iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
  return begin_collective("MPI_Iscan", comm, request, start_scan, send, receive, count, type, op);
}
CANELE_MPI_NAME(Iscan);

extern "C" int PMPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return run_collective("MPI_Exscan", comm, start_exscan, send, receive, count, type, op);
}
CANELE_MPI_NAME(Exscan);

extern "C" int PMPI_Iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                            MPI_Request* request) {
  return begin_collective("MPI_Iexscan", comm, request, start_exscan, send, receive, count, type, op);
}
CANELE_MPI_NAME(Iexscan);
