// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking requests: free ones, unusual ones, outcomes. See request.hpp.
//
// MPI lets the program free a communicator and a datatype while a message is in progress. The communicator then stays
// until no request is on it (see communicator.hpp). A request holds a reference on the datatype only if the engine
// needs its layout again later.
#include "starpu_glue/mpi/messages/request.hpp"

#include <algorithm>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {

constinit RequestPool requests_pool;
constinit thread_local FreeRequests free_requests;

namespace {

/// Runs at the end of a thread that keeps requests.
struct ThreadExit {
  bool armed = false;
  ~ThreadExit() {
    if (armed) free_requests.on_thread_exit();
  }
};
thread_local ThreadExit thread_exit;

void note_start(Request& request) {
  if (!profile::on.load(std::memory_order_relaxed) || request.has(Request::inactive)) return;
  request.started.note();
  request.flags |= Request::profiled;
}

/// Notifies the profile of the end of an operation.
void note_end(Request& request) {
  if (request.has(Request::profiled)) request.started.completed();
  request.flags &= static_cast<std::uint8_t>(~Request::profiled);
}

/// Takes a request that the caller posts and then passes to publish_request.
int take_request(Communicator& comm, bool receive, std::uint8_t flags, Request** made) {
  Request* request = free_requests.take();
  if (request == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another request");
  request->begin(comm, receive, flags);
  note_start(*request);
  *made = request;
  return MPI_SUCCESS;
}

int new_request(const Endpoint& endpoint, const Buffer& buffer, bool receive, Request** made) {
  const std::uint8_t flags = endpoint.is_proc_null() ? Request::proc_null : 0;
  const int code = take_request(*endpoint.comm, receive, flags, made);
  if (code != MPI_SUCCESS || endpoint.is_proc_null() || buffer.type->dense || buffer.type->predefined) return code;
  (*made)->flags |= Request::typed;
  (*made)->type = const_cast<Type*>(buffer.type);
  add_reference(*(*made)->type);
  return MPI_SUCCESS;
}

int get_rank(Communicator& comm, int rank, bool source, Endpoint* endpoint) {
  endpoint->comm = &comm;
  if (rank == MPI_PROC_NULL) {
    endpoint->world_rank = MPI_PROC_NULL;
  } else if (source && rank == MPI_ANY_SOURCE) {
    endpoint->world_rank = CANELE_ANY_SOURCE;
  } else if (endpoint->comm->has_rank(rank)) {
    endpoint->world_rank = endpoint->comm->world_rank(rank);
  } else {
    return fail(MPI_ERR_RANK, "%s is %d; the communicator has the ranks 0 to %d", source ? "source" : "destination",
                rank, endpoint->comm->size() - 1);
  }
  return MPI_SUCCESS;
}

void fill_status_without_message(int source, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = MPI_ANY_TAG;
  status->cancelled = 0;
  status->size = 0;
}

void free_when_finalized(canele_request_t*, unsigned, void* argument) {
  free_request(*static_cast<Request*>(argument));
}

}  // namespace

int Work::start(Request&) { return fail(MPI_ERR_REQUEST, "the request is not persistent"); }

int Work::describe(const canele_status_t&, MPI_Status* status) {
  fill_empty_status(status);
  return MPI_SUCCESS;
}

int Work::end() { return MPI_SUCCESS; }

int Work::cancel(bool) { return MPI_SUCCESS; }

int Work::complete(Request&) { return fail(MPI_ERR_REQUEST, "the request was not made by MPI_Grequest_start"); }

int Work::make_ready(int, int) { return fail(MPI_ERR_REQUEST, "the request was not made by MPI_Psend_init"); }

int Work::has_arrived(int, bool*) { return fail(MPI_ERR_REQUEST, "the request was not made by MPI_Precv_init"); }

bool FreeRequests::join() {
  if (thread_ == Thread::fresh) {
    thread_exit.armed = true;  // constructs the thread_local, so that its destructor runs at the end of the thread
    thread_ = Thread::joined;
    room_ = kMost;
  }
  return thread_ == Thread::joined;
}

Request* FreeRequests::take_from_pool() {
  if (!join()) return requests_pool.take();
  int kept = requests_pool.take_some(kBatch, [this](Request& request) { give(request); });
  for (; kept < kBatch; ++kept) {
    Request* made = requests_pool.take();
    if (made == nullptr) break;
    give(*made);
  }
  return take_cached();
}

void FreeRequests::give_to_pool(Request& request) {
  if (!join()) return requests_pool.give(request);
  if (room_ == 0) give_half();
  give(request);
}

void FreeRequests::give_half() {
  requests_pool.give_some(kMost / 2, [this]() -> Request& { return *take_cached(); });
}

void FreeRequests::on_thread_exit() {
  while (first_ != nullptr) requests_pool.give(*take_cached());
  room_ = 0;
  thread_ = Thread::ended;
}

int get_message(const Endpoint& endpoint, const void* memory, std::int64_t count, MPI_Datatype type, Buffer* buffer) {
  return get_buffer(memory, count, endpoint.is_proc_null() && type == MPI_DATATYPE_NULL ? MPI_BYTE : type, buffer);
}

int get_destination(MPI_Comm comm, int rank, int tag, Endpoint* endpoint) {
  const int code = get_communicator(comm, &endpoint->comm);
  return code != MPI_SUCCESS ? code : get_destination(*endpoint->comm, rank, tag, endpoint);
}

int get_source(MPI_Comm comm, int rank, int tag, Endpoint* endpoint) {
  const int code = get_communicator(comm, &endpoint->comm);
  return code != MPI_SUCCESS ? code : get_source(*endpoint->comm, rank, tag, endpoint);
}

int get_destination(Communicator& comm, int rank, int tag, Endpoint* endpoint) {
  if (const int code = get_rank(comm, rank, false, endpoint); code != MPI_SUCCESS) return code;
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0 for a send", tag);
  endpoint->tag = static_cast<std::uint64_t>(tag);
  return MPI_SUCCESS;
}

int get_source(Communicator& comm, int rank, int tag, Endpoint* endpoint) {
  if (const int code = get_rank(comm, rank, true, endpoint); code != MPI_SUCCESS) return code;
  if (tag == MPI_ANY_TAG) {
    endpoint->mask = CANELE_TAG_ANY;
    return MPI_SUCCESS;
  }
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0, or MPI_ANY_TAG", tag);
  endpoint->tag = static_cast<std::uint64_t>(tag);
  return MPI_SUCCESS;
}

int get_message(const void* memory, std::int64_t count, Type& type, Buffer* buffer) {
  *buffer = Buffer{const_cast<void*>(memory), count, &type};
  return check_size(count, type);
}

int check_list(int count, const MPI_Request* handles) {
  if (count < 0) return fail(MPI_ERR_COUNT, "count is %d; expected: at least 0", count);
  return count == 0 ? MPI_SUCCESS : given({{"array of requests", handles}});
}

int get_send(const void* memory, std::int64_t count, Type& type, int rank, int tag, Communicator& comm, Endpoint* to,
             Buffer* buffer) {
  const int code = get_destination(comm, rank, tag, to);
  return code == MPI_SUCCESS ? get_message(memory, count, type, buffer) : code;
}

int get_receive(void* memory, std::int64_t count, Type& type, int rank, int tag, Communicator& comm, Endpoint* from,
                Buffer* buffer) {
  const int code = get_source(comm, rank, tag, from);
  return code == MPI_SUCCESS ? get_message(memory, count, type, buffer) : code;
}

int start_send(const Endpoint& to, const Buffer& buffer, bool synchronous, MPI_Request* handle) {
  Request* request = nullptr;
  int code = new_request(to, buffer, false, &request);
  if (code != MPI_SUCCESS) return code;
  if (!to.is_proc_null()) code = request->send(to.comm->messages(), to.world_rank, to.tag, buffer, synchronous);
  return publish_request(*request, code, handle);
}

int start_receive(const Endpoint& from, const Buffer& buffer, MPI_Request* handle) {
  Request* request = nullptr;
  int code = new_request(from, buffer, true, &request);
  if (code != MPI_SUCCESS) return code;
  request->room = buffer.size();
  if (!from.is_proc_null()) {
    code = request->receive(from.comm->messages(), from.world_rank, from.tag, from.mask, buffer);
  }
  return publish_request(*request, code, handle);
}

int start_ended(Communicator& comm, MPI_Request* handle) {
  Request* request = nullptr;
  const int code = take_request(comm, false, Request::proc_null, &request);
  return code == MPI_SUCCESS ? publish_request(*request, code, handle) : code;
}

int new_collective(Communicator& comm, Request** made) { return take_request(comm, false, Request::collective, made); }

int new_access(Communicator& comm, Request** made) { return take_request(comm, false, 0, made); }

int new_persistent(Communicator& comm, bool receive, std::uint8_t flags, std::unique_ptr<Work> work, Request** made) {
  const auto all = static_cast<std::uint8_t>(flags | Request::persistent | Request::inactive);
  const int code = take_request(comm, receive, all, made);
  if (code == MPI_SUCCESS) (*made)->work = work.release();
  return code;
}

int new_special(Communicator& comm, std::unique_ptr<Work> work, Request** made) {
  const int code = take_request(comm, false, Request::special, made);
  if (code == MPI_SUCCESS) (*made)->work = work.release();
  return code;
}

int start_again(Request& request) {
  request.flags &= static_cast<std::uint8_t>(~Request::inactive);
  note_start(request);
  const int code = request.work->start(request);
  if (code == MPI_SUCCESS) return code;
  note_end(request);
  request.flags |= Request::inactive;
  return code;
}

int publish_request(Request& request, int code, MPI_Request* handle) {
  if (code == MPI_SUCCESS) {
    *handle = RequestPool::open(request);
  } else {
    drop_request(request);
  }
  return code;
}

void drop_request(Request& request) {
  if (request.flags != 0) finish_flags(request);
  free_requests.give(request);
}

int hold(Request& request) { return from_engine(canele_request_begin(engine(), &request.engine)); }

void release(Request& request, int error) { canele_request_complete(&request.engine, error); }

int wait_and_finish(MPI_Request* handle, MPI_Status* status) {
  Request* request = nullptr;
  if (const int code = get_request(*handle, &request); code != MPI_SUCCESS) return code;
  canele_status_t outcome{};
  if (!request->has(Request::proc_null)) request->wait(&outcome);
  return finish(*request, outcome, handle, status);
}

int reject_request(MPI_Request handle) {
  return fail(MPI_ERR_REQUEST, "0x%zx is not a request, or was completed before", handle_bits(handle));
}

void finish_flags(Request& request) {
  note_end(request);
  if (request.has(Request::typed)) drop_reference(*request.type);
  if (request.has(Request::collective)) request.staging.reset();
  if (request.has(Request::persistent) || request.has(Request::special)) delete request.work;
  request.flags = 0;
}

void mark_communicators_in_use() {
  requests_pool.each([](Request& request) {  // each(), not each_live(): requests of blocking calls have no handle
    if (Communicator* const comm = request.on.load(std::memory_order_acquire); comm != nullptr) comm->mark_in_use();
  });
}

canele_status_t outcome_of(const Request& request) {
  canele_status_t outcome{};
  if (!request.has(Request::proc_null)) canele_request_status(&request.engine, &outcome);
  return outcome;
}

int describe(Request& request, const canele_status_t& outcome, MPI_Status* status) {
  int code = MPI_SUCCESS;
  if (request.has(Request::special)) {
    MPI_Status ignored;
    code = request.work->describe(outcome, status != MPI_STATUS_IGNORE ? status : &ignored);
  } else if (request.has(Request::proc_null)) {
    fill_proc_null_status(status);
  } else if (request.is_receive) {
    fill_status(request.comm(), outcome, status);
    limit_size(outcome, request.room, status);
    if (outcome.cancelled == 0) code = from_status(outcome.error, outcome.source);
  } else {
    fill_empty_status(status);
    code = request.has(Request::collective) ? complete_collective(outcome, request.staging)
                                            : from_status(outcome.error, outcome.source);
  }
  return code;
}

int finish(Request& request, const canele_status_t& outcome, MPI_Request* handle, MPI_Status* status) {
  if (RequestPool::handle_of(request) != *handle) {  // the program gave it twice in one call
    fill_empty_status(status);
    const int code = reject_request(*handle);
    *handle = MPI_REQUEST_NULL;
    return code;
  }
  int code = describe(request, outcome, status);
  if (request.has(Request::special)) {
    const int end = request.work->end();
    if (code == MPI_SUCCESS) code = end;
  }
  if (request.has(Request::persistent)) {
    if (request.has(Request::profiled)) request.started.completed();
    request.make_inactive();
    return code;
  }
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
  const bool inactive = request.has(Request::inactive);
  if (request.has(Request::collective) && !inactive)
    return fail(MPI_ERR_REQUEST, "the request of a collective cannot be freed; wait for it");
  if (request.has(Request::proc_null) || inactive) {
    free_request(request);
    return MPI_SUCCESS;
  }
  // A request that has already ended, and whose event the program has seen, raises no further event.
  canele_status_t outcome{};
  if (canele_request_status(&request.engine, &outcome) == CANELE_OK) {
    free_request(request);
    return MPI_SUCCESS;
  }
  return from_engine(canele_request_on_event(&request.engine, CANELE_EVENT_FINALIZED, free_when_finalized, &request));
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
  status->cancelled = 0;
  status->size = static_cast<MPI_Count>(outcome.length);
}

void limit_size(const canele_status_t& outcome, std::size_t room, MPI_Status* status) {
  if (outcome.error != CANELE_ETRUNC || status == MPI_STATUS_IGNORE) return;
  status->size = static_cast<MPI_Count>(std::min(room, outcome.length));
}

void fill_empty_status(MPI_Status* status) { fill_status_without_message(MPI_ANY_SOURCE, status); }

void fill_proc_null_status(MPI_Status* status) { fill_status_without_message(MPI_PROC_NULL, status); }

}  // namespace canele::mpi
