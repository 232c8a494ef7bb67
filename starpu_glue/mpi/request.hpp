// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking requests of the MPI subset.
//
// Who: api_point_to_point.cpp, api_collective.cpp, api_completion.cpp. Threads: any; MPI allows one thread at a time
//     per request.
// Surprise: the object is the slot of its handle and is used again without being freed or zeroed. Each thread keeps
//     some free ones: a request costs no allocation, and usually nothing that threads share.
//
//   line 0     handle, communicator, duties: what starting and completing a message touch here
//   line 1-6   the engine's request
//   line 7, 8  what is needed where data is no block, and of collectives
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include <type_traits>

#include "starpu_glue/mpi/communicator.hpp"
#include "starpu_glue/mpi/handles.hpp"
#include "starpu_glue/mpi/profile.hpp"
#include "starpu_glue/mpi/staging.hpp"
#include "starpu_glue/mpi/transfer.hpp"

namespace canele::mpi {

struct Request;

/// The first line of a request.
struct RequestHead {
  /// What there is to do at the end, beside giving the slot back. Mostly nothing.
  enum Duty : std::uint8_t {
    nobody = 1,      ///< MPI_PROC_NULL: complete from the start
    collective = 2,  ///< results to be delivered
    profiled = 4,    ///< `started` to be told
    typed = 8        ///< a reference on `type` to be given back
  };

  std::atomic<Communicator*> on{nullptr};  ///< null while it is free. Atomic for keep_communicators_in_use only
  union {
    Request* next_free = nullptr;  ///< of those that a thread keeps
    std::size_t room;              ///< of a receive on its way: bytes that it has place for
  };
  std::uint8_t duties = 0;
  bool is_receive = false;
  profile::Started started;

  /// It is one now; no handle names it yet.
  void begin(Communicator& comm, bool receive, std::uint8_t duties_at_end) {
    on.store(&comm, std::memory_order_release);
    is_receive = receive;
    duties = duties_at_end;
  }
  Communicator& comm() const { return *on.load(std::memory_order_relaxed); }
  bool must(Duty duty) const { return (duties & duty) != 0; }
};

/// Of a collective, the transfer is the engine's request only.
struct Request : RequestHead, Transfer {
  Type* type = nullptr;
  Staging staging;  ///< of a collective

  static Request& of(canele_request_t& engine) { return static_cast<Request&>(reinterpret_cast<Transfer&>(engine)); }
};
static_assert(std::is_standard_layout_v<Transfer>);  // it begins with the engine's request
static_assert(sizeof(Request) + 16 == 9 * 64);       // a slot; an odd number of lines reaches all sets of a cache

using RequestPool = HandlePool<Request, Kind::request, 1, 32768>;
extern constinit RequestPool requests_pool;

/// The free requests of one thread. Others are taken from the pool and given to it some at a time; all when the thread
/// ends.
///
///   take: first_ ──▶ request ──▶ request ──▶ null      none: a batch from the pool
///   give: first_ ──▶ the given one ──▶ ...             no room: half of them to the pool
class FreeRequests {
 public:
  static constexpr int kMost = 256, kBatch = 32;

  /// One that no handle names; nullptr if there is no memory.
  Request* take() { return first_ != nullptr ? take_kept() : take_from_pool(); }
  /// One that the thread keeps; nullptr if it keeps none.
  Request* take_kept() {
    Request* request = first_;
    if (request == nullptr) [[unlikely]]
      return nullptr;
    first_ = request->next_free;
    ++room_;
    return request;
  }
  void give(Request& request) {
    request.on.store(nullptr, std::memory_order_release);  // with the load in keep_communicators_in_use
    if (room_ == 0) [[unlikely]]
      return give_to_pool(request);
    request.next_free = first_;
    first_ = &request;
    --room_;
  }

  /// For the end of the thread: from now on it keeps none.
  void leave();

 private:
  enum class Thread : std::uint8_t { fresh, joined, ended };

  [[gnu::cold]] Request* take_from_pool();
  [[gnu::cold]] void give_to_pool(Request& request);
  void give_half();
  bool join();

  Request* first_ = nullptr;
  int room_ = 0;  ///< for how many more; none until the thread has joined
  Thread thread_ = Thread::fresh;
};
extern constinit thread_local FreeRequests free_requests __attribute__((tls_model("initial-exec")));

/// Where a message goes to or comes from, checked.
struct Endpoint {
  Communicator* comm = nullptr;
  int world_rank = MPI_PROC_NULL;  ///< CANELE_ANY_SOURCE for MPI_ANY_SOURCE
  std::uint64_t tag = 0;
  std::uint64_t mask = CANELE_TAG_EXACT;

  bool nobody() const { return world_rank == MPI_PROC_NULL; }
};

/// Check the arguments of a call. MPI codes.
int get_buffer(const void* memory, int count, MPI_Datatype type, Buffer* buffer);
/// The same of a message; one to or from nobody needs no datatype.
int get_message(const Endpoint& endpoint, const void* memory, int count, MPI_Datatype type, Buffer* buffer);
int get_destination(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);
int get_source(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);

/// Post. MPI codes.
int start_send(const Endpoint& to, const Buffer& buffer, bool synchronous, MPI_Request* handle);
int start_receive(const Endpoint& from, const Buffer& buffer, MPI_Request* handle);

/// A request for a collective that the caller starts with `engine` and `staging`; then settle_request.
int new_collective(Communicator& comm, Request** made);
/// Hands the handle out of a request that was started; frees it if `code` says that it was not. Returns `code`.
int settle_request(Request& request, int code, MPI_Request* handle);

/// Says what is wrong with a handle that is not found. MPI code.
int refuse_request(MPI_Request handle);

/// The request of a live handle; MPI_REQUEST_NULL gives nullptr. MPI code.
inline int get_request(MPI_Request handle, Request** found) {
  *found = handle == MPI_REQUEST_NULL ? nullptr : requests_pool.find(handle);
  return *found != nullptr || handle == MPI_REQUEST_NULL ? MPI_SUCCESS : refuse_request(handle);
}

/// Does what else there is to do at the end of a request.
void discharge(Request& request);

/// Gives the slot of a finalized request back; its handle is stale.
inline void free_request(Request& request) {
  if (request.duties != 0) [[unlikely]]
    discharge(request);
  RequestPool::close(request);
  free_requests.give(request);
}

/// True once the request is finalized; does not make progress.
inline bool is_done(Request& request) {
  canele_request_t* const one = &request.engine;
  return request.must(Request::nobody) || canele_find_done(1, &one, 0) == 0;
}
/// Of one that is done.
canele_status_t outcome_of(const Request& request);

/// Turns the outcome of a finalized request into `status` (may be MPI_STATUS_IGNORE), frees it and sets *handle to
/// null. The MPI code of the outcome.
int finish(Request& request, const canele_status_t& outcome, MPI_Request* handle, MPI_Status* status);

/// What a finalized collective has come to: its results get to their places, or why it failed. MPI code.
int complete_collective(const canele_status_t& outcome, const Staging& staging);

/// Frees the request as soon as it is finalized. Not for collectives: MPI_ERR_REQUEST.
int abandon(Request& request);

/// Calls Communicator::keep() of each communicator that a request is on.
void keep_communicators_in_use();

void fill_status(const Communicator& comm, const canele_status_t& outcome, MPI_Status* status);
/// After fill_status(), where the message may have been longer than its receive, which had `room` bytes: those were
/// received.
void limit_size(const canele_status_t& outcome, std::size_t room, MPI_Status* status);
void fill_empty_status(MPI_Status* status);
void fill_nobody_status(MPI_Status* status);

}  // namespace canele::mpi
