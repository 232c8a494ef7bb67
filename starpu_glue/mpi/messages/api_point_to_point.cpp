// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Send to MPI_Iprobe: blocking and non-blocking messages, probing. Called from any thread.
//
// MPI_Send, MPI_Recv, MPI_Isend and MPI_Irecv have two paths, as have their forms for large counts. The fast path is in
// the function itself. The slow path is the one that all other functions take as well. A blocking call takes its
// request from the thread's free requests, or has it on its own stack, so nothing is allocated.
#include <sched.h>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/fast_path.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

/// Whether a call is the form for large counts. The slow paths exist for both forms, so that a call of the fast path
/// passes its arguments on as it got them.
template <class Count>
constexpr bool is_large = sizeof(Count) > sizeof(int);

template <class Count>
[[gnu::noinline]] int send_blocking(const void* memory, Count count, MPI_Datatype type, int rank, int tag,
                                    MPI_Comm comm, bool synchronous) {
  constexpr Function standard = is_large<Count> ? Function("MPI_Send_c") : Function("MPI_Send");
  constexpr Function matched = is_large<Count> ? Function("MPI_Ssend_c") : Function("MPI_Ssend");
  const Call call(synchronous ? matched : standard);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint to;
  Buffer buffer;
  int code = get_destination(comm, rank, tag, &to);
  if (code == MPI_SUCCESS) code = get_message(to, memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS || to.is_proc_null()) return call.end(code, to.comm);
  const InUse in_use(*to.comm);
  Transfer transfer;
  code = transfer.send(to.comm->messages(), to.world_rank, to.tag, buffer, synchronous);
  if (code == MPI_SUCCESS) code = transfer.wait(nullptr);
  return call.end(code, to.comm);
}

template <class Count>
[[gnu::noinline]] int send_nonblocking(const void* memory, Count count, MPI_Datatype type, int rank, int tag,
                                       MPI_Comm comm, bool synchronous, MPI_Request* request) {
  constexpr Function standard = is_large<Count> ? Function("MPI_Isend_c") : Function("MPI_Isend");
  constexpr Function matched = is_large<Count> ? Function("MPI_Issend_c") : Function("MPI_Issend");
  const Call call(synchronous ? matched : standard);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint to;
  Buffer buffer;
  int code = given({{"request", request}});
  if (code == MPI_SUCCESS) code = get_destination(comm, rank, tag, &to);
  if (code == MPI_SUCCESS) code = get_message(to, memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = start_send(to, buffer, synchronous, request);
  return call.end(code, to.comm);
}

template <class Count>
[[gnu::noinline]] int receive_blocking(void* memory, Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                                       MPI_Status* status) {
  const Call call(is_large<Count> ? Function("MPI_Recv_c") : Function("MPI_Recv"));
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint from;
  Buffer buffer;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = get_message(from, memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code, from.comm);
  if (from.is_proc_null()) {
    fill_proc_null_status(status);
    return MPI_SUCCESS;
  }
  const InUse in_use(*from.comm);
  Transfer transfer;
  code = transfer.receive(from.comm->messages(), from.world_rank, from.tag, from.mask, buffer);
  if (code == MPI_SUCCESS) {
    canele_status_t outcome{};
    code = transfer.wait(&outcome);
    fill_status(*from.comm, outcome, status);
    limit_size(outcome, buffer.size(), status);
  }
  return call.end(code, from.comm);
}

template <class Count>
[[gnu::noinline]] int receive_nonblocking(void* memory, Count count, MPI_Datatype type, int rank, int tag,
                                          MPI_Comm comm, MPI_Request* request) {
  const Call call(is_large<Count> ? Function("MPI_Irecv_c") : Function("MPI_Irecv"));
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint from;
  Buffer buffer;
  int code = given({{"request", request}});
  if (code == MPI_SUCCESS) code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = get_message(from, memory, count, type, &buffer);
  if (code == MPI_SUCCESS) code = start_receive(from, buffer, request);
  return call.end(code, from.comm);
}

/// Handles a fast-path message that the engine has rejected, or that has failed. No handle names its request yet.
[[gnu::cold, gnu::noinline]] int fail_on_fast_path(Function function, Request& request, int error, MPI_Status* status) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (error == CANELE_EDEADLK) fatal("a call that blocks was made inside a completion callback");
  const int code = from_engine(error);
  const Communicator& comm = request.comm();
  canele_status_t outcome{};
  canele_request_status(&request.engine, &outcome);
  if (status != MPI_STATUS_IGNORE && outcome.error == error) {
    fill_status(comm, outcome, status);
    limit_size(outcome, request.room, status);
  }
  const int ended = call.end(code, &comm);
  free_requests.give(request);  // last: the request keeps the communicator open
  return ended;
}

/// Ends the fast path of a non-blocking call. `error` is the result of the engine's call.
[[gnu::always_inline]] inline int return_handle(Function function, Request& made, int error, MPI_Request* handle) {
  if (error != CANELE_OK) [[unlikely]]
    return fail_on_fast_path(function, made, error, MPI_STATUS_IGNORE);
  *handle = RequestPool::open(made);
  return MPI_SUCCESS;
}

int probe(const Endpoint& from, int* flag, MPI_Status* status) {
  if (from.is_proc_null()) {
    fill_proc_null_status(status);
    *flag = 1;
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  const int error = canele_iprobe(from.comm->messages(), from.world_rank, from.tag, from.mask, flag, &outcome);
  if (error == CANELE_OK && *flag != 0) fill_status(*from.comm, outcome, status);
  return from_engine(error);
}

/// The calls with a fast path, for counts of both types: the compiler makes two functions of each.
template <class Count>
[[gnu::always_inline]] inline int send(Function function, const void* memory, Count count, MPI_Datatype type, int rank,
                                       int tag, MPI_Comm comm) {
  FastMessage message;
  if (message.has_destination(comm, rank, tag) && message.has_data(type, count) && may_wait_fast()) [[likely]] {
    if (Request* request = message.take_request(false)) [[likely]] {
      int error = message.send(memory, *request);
      if (error == CANELE_OK) [[likely]]
        error = canele_wait(&request->engine, nullptr);
      if (error != CANELE_OK) [[unlikely]]
        return fail_on_fast_path(function, *request, error, MPI_STATUS_IGNORE);
      free_requests.give(*request);
      return MPI_SUCCESS;
    }
  }
  return send_blocking(memory, count, type, rank, tag, comm, false);
}

template <class Count>
[[gnu::always_inline]] inline int receive(Function function, void* memory, Count count, MPI_Datatype type, int rank,
                                          int tag, MPI_Comm comm, MPI_Status* status) {
  FastMessage message;
  if (message.has_source(comm, rank, tag) && message.has_data(type, count) && may_wait_fast()) [[likely]] {
    if (Request* request = message.take_request(true)) [[likely]] {
      canele_status_t outcome;
      int error = message.receive(memory, *request);
      if (error == CANELE_OK) [[likely]]
        error = canele_wait(&request->engine, status == MPI_STATUS_IGNORE ? nullptr : &outcome);
      if (error != CANELE_OK) [[unlikely]]
        return fail_on_fast_path(function, *request, error, status);
      if (status != MPI_STATUS_IGNORE) fill_status(request->comm(), outcome, status);
      free_requests.give(*request);
      return MPI_SUCCESS;
    }
  }
  return receive_blocking(memory, count, type, rank, tag, comm, status);
}

template <class Count>
[[gnu::always_inline]] inline int begin_send(Function function, const void* memory, Count count, MPI_Datatype type,
                                             int rank, int tag, MPI_Comm comm, MPI_Request* request) {
  FastMessage message;
  if (request != nullptr && message.has_destination(comm, rank, tag) && message.has_data(type, count)) [[likely]] {
    if (Request* made = message.take_request(false)) [[likely]]
      return return_handle(function, *made, message.send(memory, *made), request);
  }
  return send_nonblocking(memory, count, type, rank, tag, comm, false, request);
}

template <class Count>
[[gnu::always_inline]] inline int begin_receive(Function function, void* memory, Count count, MPI_Datatype type,
                                                int rank, int tag, MPI_Comm comm, MPI_Request* request) {
  FastMessage message;
  if (request != nullptr && message.has_source(comm, rank, tag) && message.has_data(type, count)) [[likely]] {
    if (Request* made = message.take_request(true)) [[likely]]
      return return_handle(function, *made, message.receive(memory, *made), request);
  }
  return receive_nonblocking(memory, count, type, rank, tag, comm, request);
}

/// One side of an exchange.
struct Side {
  void* memory;
  MPI_Count count;
  MPI_Datatype type;
  int rank, tag;
};

int exchange(Function function, const Side& send, const Side& receive, MPI_Comm comm, MPI_Status* status) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint to;
  Endpoint from;
  Buffer outgoing;
  Buffer incoming;
  int code = get_destination(comm, send.rank, send.tag, &to);
  if (code == MPI_SUCCESS) code = get_source(comm, receive.rank, receive.tag, &from);
  if (code == MPI_SUCCESS) code = get_message(to, send.memory, send.count, send.type, &outgoing);
  if (code == MPI_SUCCESS) code = get_message(from, receive.memory, receive.count, receive.type, &incoming);
  if (code == MPI_SUCCESS) code = may_block();
  MPI_Request request = MPI_REQUEST_NULL;
  if (code == MPI_SUCCESS) code = start_receive(from, incoming, &request);
  if (code != MPI_SUCCESS) return call.end(code, to.comm);
  const InUse in_use(*to.comm);
  if (!to.is_proc_null()) {
    Transfer transfer;
    code = transfer.send(to.comm->messages(), to.world_rank, to.tag, outgoing, false);
    if (code == MPI_SUCCESS) code = transfer.wait(nullptr);
  }
  Request* received = nullptr;
  get_request(request, &received);
  canele_status_t outcome{};
  if (code != MPI_SUCCESS) canele_cancel(&received->engine);
  if (!from.is_proc_null()) received->wait(&outcome);
  const int second = finish(*received, outcome, &request, status);
  return call.end(code != MPI_SUCCESS ? code : second, to.comm);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send("MPI_Send", buffer, count, type, rank, tag, comm);
}
CANELE_MPI_NAME(Send);

extern "C" int PMPI_Ssend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send_blocking(buffer, count, type, rank, tag, comm, true);
}
CANELE_MPI_NAME(Ssend);

extern "C" int PMPI_Recv(void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                         MPI_Status* status) {
  return receive("MPI_Recv", memory, count, type, rank, tag, comm, status);
}
CANELE_MPI_NAME(Recv);

extern "C" int PMPI_Isend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                          MPI_Request* request) {
  return begin_send("MPI_Isend", buffer, count, type, rank, tag, comm, request);
}
CANELE_MPI_NAME(Isend);

extern "C" int PMPI_Issend(const void* buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                           MPI_Request* request) {
  return send_nonblocking(buffer, count, type, rank, tag, comm, true, request);
}
CANELE_MPI_NAME(Issend);

extern "C" int PMPI_Irecv(void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                          MPI_Request* request) {
  return begin_receive("MPI_Irecv", memory, count, type, rank, tag, comm, request);
}
CANELE_MPI_NAME(Irecv);

extern "C" int PMPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int destination, int send_tag,
                             void* receive, int receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                             MPI_Comm comm, MPI_Status* status) {
  return exchange("MPI_Sendrecv", {const_cast<void*>(send), send_count, send_type, destination, send_tag},
                  {receive, receive_count, receive_type, source, receive_tag}, comm, status);
}
CANELE_MPI_NAME(Sendrecv);

extern "C" int PMPI_Send_c(const void* buffer, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send("MPI_Send_c", buffer, count, type, rank, tag, comm);
}
CANELE_MPI_NAME(Send_c);

extern "C" int PMPI_Ssend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
  return send_blocking(buffer, count, type, rank, tag, comm, true);
}
CANELE_MPI_NAME(Ssend_c);

extern "C" int PMPI_Recv_c(void* memory, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                           MPI_Status* status) {
  return receive("MPI_Recv_c", memory, count, type, rank, tag, comm, status);
}
CANELE_MPI_NAME(Recv_c);

extern "C" int PMPI_Isend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                            MPI_Request* request) {
  return begin_send("MPI_Isend_c", buffer, count, type, rank, tag, comm, request);
}
CANELE_MPI_NAME(Isend_c);

extern "C" int PMPI_Issend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                             MPI_Request* request) {
  return send_nonblocking(buffer, count, type, rank, tag, comm, true, request);
}
CANELE_MPI_NAME(Issend_c);

extern "C" int PMPI_Irecv_c(void* memory, MPI_Count count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                            MPI_Request* request) {
  return begin_receive("MPI_Irecv_c", memory, count, type, rank, tag, comm, request);
}
CANELE_MPI_NAME(Irecv_c);

extern "C" int PMPI_Sendrecv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, int destination,
                               int send_tag, void* receive, MPI_Count receive_count, MPI_Datatype receive_type,
                               int source, int receive_tag, MPI_Comm comm, MPI_Status* status) {
  return exchange("MPI_Sendrecv_c", {const_cast<void*>(send), send_count, send_type, destination, send_tag},
                  {receive, receive_count, receive_type, source, receive_tag}, comm, status);
}
CANELE_MPI_NAME(Sendrecv_c);

extern "C" int PMPI_Probe(int rank, int tag, MPI_Comm comm, MPI_Status* status) {
  const Call call("MPI_Probe");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Endpoint from;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code, from.comm);
  const InUse in_use(*from.comm);
  int flag = 0;
  while (code == MPI_SUCCESS && flag == 0) {
    code = probe(from, &flag, status);
    if (flag == 0) sched_yield();  // the engine has no blocking probe; each iteration makes progress
  }
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Probe);

extern "C" int PMPI_Iprobe(int rank, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const Call call("MPI_Iprobe");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"flag", flag}}); code != MPI_SUCCESS) return call.end(code);
  Endpoint from;
  int code = get_source(comm, rank, tag, &from);
  if (code == MPI_SUCCESS) code = probe(from, flag, status);
  return call.end(code, from.comm);
}
CANELE_MPI_NAME(Iprobe);
