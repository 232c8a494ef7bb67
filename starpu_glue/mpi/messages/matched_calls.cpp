// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Improbe to MPI_Imrecv: matched probes. Any thread.
//
// A probe that finds a message makes the request that will receive it. The request keeps the communicator open.
#include <sched.h>

#include "calls/point_to_point.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/message.hpp"

namespace canele::mpi {

constinit MessagePool messages_pool;

namespace {

int probe_matched(const Endpoint& from, int* flag, MPI_Message* message, MPI_Status* status) {
  if (from.is_proc_null()) {
    *flag = 1;
    *message = MPI_MESSAGE_NO_PROC;
    fill_proc_null_status(status);
    return MPI_SUCCESS;
  }
  Message* const made = messages_pool.take();
  if (made == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another message");
  Request* request = nullptr;
  int code = new_access(*from.comm, &request);
  canele_status_t outcome{};
  int found = 0;
  if (code == MPI_SUCCESS) {
    code = from_engine(canele_improbe(from.comm->messages(), from.world_rank, from.tag, from.mask, &found,
                                      &request->engine, &outcome));
    if (found == 0) drop_request(*request);
  }
  if (found == 0) {
    messages_pool.give(*made);
  } else {
    request->is_receive = true;
    made->request = request;
    *message = MessagePool::open(*made);
    fill_status(*from.comm, outcome, status);
  }
  if (code == MPI_SUCCESS) *flag = found;
  return code;
}

}  // namespace

namespace calls {

int improbe(int source, int tag, Communicator& comm, int* flag, MPI_Message* message, MPI_Status* status) {
  Endpoint from;
  const int code = get_source(comm, source, tag, &from);
  if (code != MPI_SUCCESS) return code;
  *message = MPI_MESSAGE_NULL;
  return probe_matched(from, flag, message, status);
}

int mprobe(int source, int tag, Communicator& comm, MPI_Message* message, MPI_Status* status) {
  Endpoint from;
  int code = get_source(comm, source, tag, &from);
  const InUse in_use(comm);
  int flag = 0;
  while (code == MPI_SUCCESS && flag == 0) {
    code = probe_matched(from, &flag, message, status);
    if (flag == 0) sched_yield();  // the engine has no blocking probe; each iteration makes progress
  }
  return code;
}

int imrecv(void* buf, MPI_Count count, Type& datatype, MPI_Message* message, MPI_Request* request) {
  Buffer buffer;
  if (const int code = get_message(buf, count, datatype, &buffer); code != MPI_SUCCESS) return code;
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    Communicator* any = nullptr;
    const int code = get_any_communicator(&any);
    return code == MPI_SUCCESS ? start_ended(*any, request) : code;
  }
  Message* const found = messages_pool.find(*message);
  if (found == nullptr) {
    return fail(MPI_ERR_REQUEST, "0x%zx is not a message, or was received before", handle_bits(*message));
  }
  Request& receive = *found->request;
  receive.room = buffer.size();
  receive.payload = Payload(buf, static_cast<std::size_t>(count), datatype);
  const canele_data_t data = receive.payload.describe();
  if (const int code = from_engine(canele_receive_bind(&receive.engine, &data)); code != MPI_SUCCESS) return code;
  receive.flags |= Request::typed;
  receive.type = &datatype;
  add_reference(datatype);
  messages_pool.release(*message);
  *message = MPI_MESSAGE_NULL;
  *request = RequestPool::open(receive);
  return MPI_SUCCESS;
}

int mrecv(void* buf, MPI_Count count, Type& datatype, MPI_Message* message, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = imrecv(buf, count, datatype, message, &request);
  return code == MPI_SUCCESS ? wait_and_finish(&request, status) : code;
}

}  // namespace calls
}  // namespace canele::mpi
