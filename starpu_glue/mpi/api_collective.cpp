// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Barrier to MPI_Alltoall, and operators: argument checks in front of collectives.cpp.
//
// Who: the program. Threads: any; one collective at a time per communicator, as MPI says.
// Surprise: arguments that MPI lets a rank leave out (the receive buffer of a rank that is not the root) are not
//     looked at.
#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/collectives.hpp"
#include "starpu_glue/mpi/request.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {
namespace {

/// The start of every collective: communicator, and leave to block.
int enter(MPI_Comm comm, Communicator** found) {
  const int code = get_communicator(comm, found);
  return code == MPI_SUCCESS ? may_block() : code;
}

int enter_rooted(MPI_Comm comm, int root, Communicator** found) {
  const int code = enter(comm, found);
  if (code != MPI_SUCCESS || (root >= 0 && root < (*found)->size())) return code;
  return fail(MPI_ERR_ROOT, "root is %d; the communicator has the ranks 0 to %d", root, (*found)->size() - 1);
}

/// A buffer that may be MPI_IN_PLACE: then count and type are not looked at.
int get_buffer_or_in_place(const void* memory, int count, MPI_Datatype type, Buffer* buffer) {
  if (memory != MPI_IN_PLACE) return get_buffer(memory, count, type, buffer);
  buffer->memory = MPI_IN_PLACE;
  return MPI_SUCCESS;
}

int refuse_in_place(const Buffer& buffer, const char* where) {
  if (!in_place(buffer)) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed as the %s buffer of this rank", where);
}

/// Both buffers and the operator of a reduction.
int get_reduction(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, bool receives,
                  Buffer* outgoing, Buffer* incoming, Operator* operation) {
  int code = get_buffer(receive, count, type, incoming);
  if (code == MPI_SUCCESS) code = get_operator(op, *incoming->type, operation);
  if (code != MPI_SUCCESS) return code;
  *outgoing = Buffer{const_cast<void*>(send), count, incoming->type};
  if (!receives) return refuse_in_place(*outgoing, "send");
  return refuse_in_place(*incoming, "receive");
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Barrier(MPI_Comm handle) {
  const Call call("MPI_Barrier");
  Communicator* comm = nullptr;
  int code = enter(handle, &comm);
  if (code == MPI_SUCCESS) code = barrier(*comm);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Barrier);

extern "C" int PMPI_Bcast(void* memory, int count, MPI_Datatype type, int root, MPI_Comm handle) {
  const Call call("MPI_Bcast");
  Communicator* comm = nullptr;
  Buffer buffer;
  int code = enter_rooted(handle, root, &comm);
  if (code == MPI_SUCCESS) code = get_buffer(memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = broadcast(*comm, buffer, root);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Bcast);

extern "C" int PMPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                           MPI_Comm handle) {
  const Call call("MPI_Reduce");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  Operator operation;
  int code = enter_rooted(handle, root, &comm);
  if (code == MPI_SUCCESS) {
    code = get_reduction(send, receive, count, type, op, comm->rank() == root, &outgoing, &incoming, &operation);
  }
  if (code == MPI_SUCCESS) code = reduce(*comm, outgoing, incoming, operation, root);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Reduce);

extern "C" int PMPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm handle) {
  const Call call("MPI_Allreduce");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  Operator operation;
  int code = enter(handle, &comm);
  if (code == MPI_SUCCESS) code = get_reduction(send, receive, count, type, op, true, &outgoing, &incoming, &operation);
  if (code == MPI_SUCCESS) code = allreduce(*comm, outgoing, incoming, operation);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Allreduce);

extern "C" int PMPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                           MPI_Datatype receive_type, int root, MPI_Comm handle) {
  const Call call("MPI_Gather");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  int code = enter_rooted(handle, root, &comm);
  if (code == MPI_SUCCESS) code = get_buffer_or_in_place(send, send_count, send_type, &outgoing);
  if (code == MPI_SUCCESS && comm->rank() == root) {
    code = get_buffer(receive, receive_count, receive_type, &incoming);
    if (code == MPI_SUCCESS) code = refuse_in_place(incoming, "receive");
  } else if (code == MPI_SUCCESS) {
    code = refuse_in_place(outgoing, "send");
  }
  if (code == MPI_SUCCESS) code = gather(*comm, outgoing, incoming, root);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Gather);

extern "C" int PMPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                            MPI_Datatype receive_type, int root, MPI_Comm handle) {
  const Call call("MPI_Scatter");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  int code = enter_rooted(handle, root, &comm);
  if (code == MPI_SUCCESS) code = get_buffer_or_in_place(receive, receive_count, receive_type, &incoming);
  if (code == MPI_SUCCESS && comm->rank() == root) {
    code = get_buffer(send, send_count, send_type, &outgoing);
    if (code == MPI_SUCCESS) code = refuse_in_place(outgoing, "send");
  } else if (code == MPI_SUCCESS) {
    code = refuse_in_place(incoming, "receive");
  }
  if (code == MPI_SUCCESS) code = scatter(*comm, outgoing, incoming, root);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Scatter);

extern "C" int PMPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                              int receive_count, MPI_Datatype receive_type, MPI_Comm handle) {
  const Call call("MPI_Allgather");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  int code = enter(handle, &comm);
  if (code == MPI_SUCCESS) code = get_buffer_or_in_place(send, send_count, send_type, &outgoing);
  if (code == MPI_SUCCESS) code = get_buffer(receive, receive_count, receive_type, &incoming);
  if (code == MPI_SUCCESS) code = refuse_in_place(incoming, "receive");
  if (code == MPI_SUCCESS) code = allgather(*comm, outgoing, incoming);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Allgather);

extern "C" int PMPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                             MPI_Datatype receive_type, MPI_Comm handle) {
  const Call call("MPI_Alltoall");
  Communicator* comm = nullptr;
  Buffer outgoing;
  Buffer incoming;
  int code = enter(handle, &comm);
  if (code == MPI_SUCCESS) code = get_buffer_or_in_place(send, send_count, send_type, &outgoing);
  if (code == MPI_SUCCESS) code = get_buffer(receive, receive_count, receive_type, &incoming);
  if (code == MPI_SUCCESS) code = refuse_in_place(incoming, "receive");
  if (code == MPI_SUCCESS) code = alltoall(*comm, outgoing, incoming);
  return call.end(code, comm);
}
CANELE_MPI_NAME(Alltoall);

extern "C" int PMPI_Op_create(MPI_User_function* function, int, MPI_Op* op) {
  const Call call("MPI_Op_create");
  return call.end(new_operator(function, op));  // rank order is kept for all, so commuting makes no difference
}
CANELE_MPI_NAME(Op_create);

extern "C" int PMPI_Op_free(MPI_Op* op) {
  const Call call("MPI_Op_free");
  return call.end(free_operator(op));
}
CANELE_MPI_NAME(Op_free);
