// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking requests: arguments, posting, outcomes.
//
// Who: api_point_to_point.cpp, api_collective.cpp, api_completion.cpp. Threads: see request.hpp.
// Surprise: a request holds references on its communicator and datatype, because MPI lets the program free both while
//      the message is on its way.
#include "starpu_glue/mpi/request.hpp"

#include "starpu_glue/mpi/error.hpp"
#include "starpu_glue/mpi/handles.hpp"

namespace canele::mpi {
namespace {

constinit HandlePool<Request, Kind::request, 1, 32768> requests_pool;

/// A slot, with all but its type.
int take_request(Communicator& comm, bool receive, bool to_nobody, bool collective, Request** made) {
  MPI_Request handle = MPI_REQUEST_NULL;
  Request* request = requests_pool.acquire(&handle);
  if (request == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another request");
  request->handle = handle;
  request->type = nullptr;
  request->comm = &comm;
  request->receive = receive;
  request->to_nobody = to_nobody;
  request->collective = collective;
  request->started.note();
  comm.add_reference();
  *made = request;
  return MPI_SUCCESS;
}

int new_request(const Endpoint& endpoint, const Buffer& buffer, bool receive, Request** made) {
  const int code = take_request(*endpoint.comm, receive, endpoint.nobody(), false, made);
  if (code != MPI_SUCCESS) return code;
  (*made)->type = const_cast<Type*>(buffer.type);
  add_reference(*(*made)->type);
  return MPI_SUCCESS;
}

void free_request(Request& request) {
  request.started.completed();
  if (request.type != nullptr) drop_reference(*request.type);
  request.staging.reset();
  Communicator* comm = request.comm;
  requests_pool.release(request.handle);
  comm->drop_reference();
}

void free_when_finalized(canele_request_t*, unsigned, void* argument) {
  free_request(*static_cast<Request*>(argument));
}

int get_rank(MPI_Comm comm, int rank, bool source, Endpoint* endpoint) {
  if (const int code = get_communicator(comm, &endpoint->comm); code != MPI_SUCCESS) return code;
  if (rank == MPI_PROC_NULL) {
    endpoint->world_rank = MPI_PROC_NULL;
  } else if (source && rank == MPI_ANY_SOURCE) {
    endpoint->world_rank = CANELE_ANY_SOURCE;
  } else if (rank >= 0 && rank < endpoint->comm->size()) {
    endpoint->world_rank = endpoint->comm->world_rank(rank);
  } else {
    return fail(MPI_ERR_RANK, "%s is %d; the communicator has the ranks 0 to %d", source ? "source" : "destination",
                rank, endpoint->comm->size() - 1);
  }
  return MPI_SUCCESS;
}

/// Hands the handle of a request out that was posted; frees it if `code` says that it was not.
int settle_request(Request& request, int code, MPI_Request* handle) {
  if (code != MPI_SUCCESS) {
    free_request(request);
    return code;
  }
  *handle = request.handle;
  return MPI_SUCCESS;
}

}  // namespace

int get_buffer(const void* memory, int count, MPI_Datatype type, Buffer* buffer) {
  const Type* found = find_type(type);
  if (found == nullptr) {
    return fail(MPI_ERR_TYPE, "0x%x is not a datatype, or was freed", static_cast<unsigned>(type));
  }
  if (count < 0) return fail(MPI_ERR_COUNT, "count is %d; it must be at least 0", count);
  *buffer = Buffer{const_cast<void*>(memory), count, found};
  return MPI_SUCCESS;
}

int get_destination(MPI_Comm comm, int rank, int tag, Endpoint* endpoint) {
  if (const int code = get_rank(comm, rank, false, endpoint); code != MPI_SUCCESS) return code;
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; the tag of a send must be at least 0", tag);
  endpoint->tag = static_cast<std::uint64_t>(tag);
  return MPI_SUCCESS;
}

int get_source(MPI_Comm comm, int rank, int tag, Endpoint* endpoint) {
  if (const int code = get_rank(comm, rank, true, endpoint); code != MPI_SUCCESS) return code;
  if (tag == MPI_ANY_TAG) {
    endpoint->mask = CANELE_TAG_ANY;
    return MPI_SUCCESS;
  }
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; it must be at least 0, or MPI_ANY_TAG", tag);
  endpoint->tag = static_cast<std::uint64_t>(tag);
  return MPI_SUCCESS;
}

int start_send(const Endpoint& to, const Buffer& buffer, bool synchronous, MPI_Request* handle) {
  Request* request = nullptr;
  int code = new_request(to, buffer, false, &request);
  if (code != MPI_SUCCESS) return code;
  if (!to.nobody()) code = request->transfer.send(to.comm->messages(), to.world_rank, to.tag, buffer, synchronous);
  return settle_request(*request, code, handle);
}

int start_receive(const Endpoint& from, const Buffer& buffer, MPI_Request* handle) {
  Request* request = nullptr;
  int code = new_request(from, buffer, true, &request);
  if (code != MPI_SUCCESS) return code;
  if (!from.nobody()) {
    code = request->transfer.receive(from.comm->messages(), from.world_rank, from.tag, from.mask, buffer);
  }
  return settle_request(*request, code, handle);
}

int new_collective(Communicator& comm, Request** made) { return take_request(comm, false, false, true, made); }

int settle_collective(Request& request, int code, MPI_Request* handle) { return settle_request(request, code, handle); }

int get_request(MPI_Request handle, Request** found) {
  *found = nullptr;
  if (handle == MPI_REQUEST_NULL) return MPI_SUCCESS;
  *found = requests_pool.find(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_REQUEST, "0x%x is not a request, or was completed before", static_cast<unsigned>(handle));
}

bool is_done(Request& request, canele_status_t* status) {
  return request.to_nobody || canele_request_status(&request.transfer.engine, status) == CANELE_OK;
}

int finish(Request& request, const canele_status_t& outcome, MPI_Request* handle, MPI_Status* status) {
  int code = MPI_SUCCESS;
  if (request.to_nobody) {
    fill_nobody_status(status);
  } else if (request.receive) {
    fill_status(*request.comm, outcome, status);
    if (outcome.cancelled == 0) code = from_status(outcome.error, outcome.source);
  } else {
    fill_empty_status(status);
    code =
        request.collective ? complete_collective(outcome, request.staging) : from_status(outcome.error, outcome.source);
  }
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
  free_request(request);
  *handle = MPI_REQUEST_NULL;
  return code;
}

int complete_collective(const canele_status_t& outcome, const Staging& staging) {
  if (outcome.error == CANELE_EPROTOCOL) {
    return fail(
        MPI_ERR_TRUNCATE,
        "a message of rank %d of MPI_COMM_WORLD is not as long as this rank's arguments say; all ranks must make "
        "the same calls in the same order, with counts, types and roots that fit",
        outcome.source);
  }
  const int code = from_status(outcome.error, outcome.source);
  if (code == MPI_SUCCESS) staging.deliver();
  return code;
}

int abandon(Request& request) {
  if (request.collective) return fail(MPI_ERR_REQUEST, "the request of a collective cannot be freed; wait for it");
  if (request.to_nobody) {
    free_request(request);
    return MPI_SUCCESS;
  }
  return from_engine(
      canele_request_on_event(&request.transfer.engine, CANELE_EVENT_FINALIZED, free_when_finalized, &request));
}

void fill_status(const Communicator& comm, const canele_status_t& outcome, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  if (outcome.cancelled != 0) {
    fill_empty_status(status);
    status->cancelled = 1;
    return;
  }
  status->MPI_SOURCE = comm.ranks()->position(outcome.source);
  status->MPI_TAG = static_cast<int>(outcome.tag);
  status->MPI_ERROR = MPI_SUCCESS;
  status->cancelled = 0;
  status->size = static_cast<MPI_Count>(outcome.length);
}

void fill_empty_status(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  *status = MPI_Status{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, 0, 0};
}

void fill_nobody_status(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  *status = MPI_Status{MPI_PROC_NULL, MPI_ANY_TAG, MPI_SUCCESS, 0, 0};
}

}  // namespace canele::mpi
