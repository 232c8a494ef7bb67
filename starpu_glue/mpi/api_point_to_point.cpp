// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Send to MPI_Iprobe: blocking and non-blocking messages, probing.
//
// Who: the program. Threads: any.
// Surprise: a blocking call keeps its request on its own stack, so nothing is allocated.
#include <sched.h>

#include <climits>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/request.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {
namespace {

int send_blocking(const Call& call, const void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                  bool synchronous) {
  Endpoint to;
  Buffer buffer;
  int code = get_destination(comm, rank, tag, &to);
  if (code == MPI_SUCCESS) code = get_buffer(memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = may_block();
  if (code == MPI_SUCCESS && !to.nobody()) {
    Transfer transfer;
    code = transfer.send(to.comm->messages(), to.world_rank, to.tag, buffer, synchronous);
    if (code == MPI_SUCCESS) code = transfer.wait(nullptr);
  }
  return call.end(code, to.comm);
}

int send_later(const Call& call, const void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
               bool synchronous, MPI_Request* request) {
  Endpoint to;
  Buffer buffer;
  int code = get_destination(comm, rank, tag, &to);
  if (code == MPI_SUCCESS) code = get_buffer(memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = start_send(to, buffer, synchronous, request);
  return call.end(code, to.comm);
}

/// Fills `status` from a transfer that was a receive; keeps the code.
int receive_outcome(const Endpoint& from, int code, const canele_status_t& outcome, MPI_Status* status) {
  fill_status(*from.comm, outcome, status);
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
  return code;
}

int probe(const Endpoint& from, int* flag, MPI_Status* status) {
  if (from.nobody()) {
    fill_nobody_status(status);
    *flag = 1;
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  const int error = canele_iprobe(from.comm->messages(), from.world_rank, from.tag, from.mask, flag, &outcome);
  if (error == CANELE_OK && *flag != 0) fill_status(*from.comm, outcome, status);
  return from_engine(error);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send_blocking(Call("MPI_Send"), buffer, count, type, rank, tag, comm, false);
}
CANELE_MPI_NAME(Send);

extern "C" int PMPI_Ssend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send_blocking(Call("MPI_Ssend"), buffer, count, type, rank, tag, comm, true);
}
CANELE_MPI_NAME(Ssend);

extern "C" int PMPI_Recv(void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                         MPI_Status* status) {
  const Call call("MPI_Recv");
  Endpoint from;
  Buffer buffer;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = get_buffer(memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code, from.comm);
  if (from.nobody()) {
    fill_nobody_status(status);
    return MPI_SUCCESS;
  }
  Transfer transfer;
  code = transfer.receive(from.comm->messages(), from.world_rank, from.tag, from.mask, buffer);
  if (code == MPI_SUCCESS) {
    canele_status_t outcome{};
    code = transfer.wait(&outcome);
    receive_outcome(from, code, outcome, status);
  }
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Recv);

extern "C" int PMPI_Isend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                          MPI_Request* request) {
  return send_later(Call("MPI_Isend"), buffer, count, type, rank, tag, comm, false, request);
}
CANELE_MPI_NAME(Isend);

extern "C" int PMPI_Issend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                           MPI_Request* request) {
  return send_later(Call("MPI_Issend"), buffer, count, type, rank, tag, comm, true, request);
}
CANELE_MPI_NAME(Issend);

extern "C" int PMPI_Irecv(void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                          MPI_Request* request) {
  const Call call("MPI_Irecv");
  Endpoint from;
  Buffer buffer;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = get_buffer(memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = start_receive(from, buffer, request);
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Irecv);

extern "C" int PMPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int destination, int send_tag,
                             void* receive, int receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                             MPI_Comm comm, MPI_Status* status) {
  const Call call("MPI_Sendrecv");
  Endpoint to;
  Endpoint from;
  Buffer outgoing;
  Buffer incoming;
  int code = get_destination(comm, destination, send_tag, &to);
  if (code == MPI_SUCCESS) code = get_source(comm, source, receive_tag, &from);
  if (code == MPI_SUCCESS) code = get_buffer(send, send_count, send_type, &outgoing);
  if (code == MPI_SUCCESS) code = get_buffer(receive, receive_count, receive_type, &incoming);
  if (code == MPI_SUCCESS) code = may_block();
  MPI_Request request = MPI_REQUEST_NULL;
  if (code == MPI_SUCCESS) code = start_receive(from, incoming, &request);
  if (code != MPI_SUCCESS) return call.end(code, to.comm);
  if (!to.nobody()) {
    Transfer transfer;
    code = transfer.send(to.comm->messages(), to.world_rank, to.tag, outgoing, false);
    if (code == MPI_SUCCESS) code = transfer.wait(nullptr);
  }
  Request* received = nullptr;
  get_request(request, &received);
  canele_status_t outcome{};
  if (code != MPI_SUCCESS) canele_cancel(&received->transfer.engine);
  if (!from.nobody()) received->transfer.wait(&outcome);
  const int second = finish(*received, outcome, &request, status);
  return call.end(code != MPI_SUCCESS ? code : second, to.comm);
}
CANELE_MPI_NAME(Sendrecv);

extern "C" int PMPI_Probe(int rank, int tag, MPI_Comm comm, MPI_Status* status) {
  const Call call("MPI_Probe");
  Endpoint from;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = may_block();
  int flag = 0;
  while (code == MPI_SUCCESS && flag == 0) {
    code = probe(from, &flag, status);
    if (flag == 0) sched_yield();  // the engine has no blocking probe; each turn makes progress
  }
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Probe);

extern "C" int PMPI_Iprobe(int rank, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const Call call("MPI_Iprobe");
  Endpoint from;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = probe(from, flag, status);
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Iprobe);

extern "C" int PMPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) {
  const Call call("MPI_Get_count");
  Buffer element;
  if (const int code = get_buffer(nullptr, 1, type, &element); code != MPI_SUCCESS) return call.end(code);
  const auto size = static_cast<MPI_Count>(element.size());
  if (size == 0) {
    *count = status->size == 0 ? 0 : MPI_UNDEFINED;
  } else {
    const MPI_Count elements = status->size / size;
    *count = status->size % size != 0 || elements > INT_MAX ? MPI_UNDEFINED : static_cast<int>(elements);
  }
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Get_count);
