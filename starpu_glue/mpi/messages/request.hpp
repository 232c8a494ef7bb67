// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking requests of the MPI layer. Usable from any thread; MPI allows one thread at a time per request.
//
// The object is the slot of its handle. It is reused without being freed or zeroed. Each thread keeps some free
// requests, so a request costs no allocation and usually touches no memory that threads share.
//
//     line 0        handle, communicator, flags: what starting and completing a message touch here
//     line 1-6      the engine's request
//     line 7, 8     what is needed if data is no block, and of collectives
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include <atomic>
#include <memory>
#include <type_traits>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/core/profile.hpp"
#include "starpu_glue/mpi/datatypes/staging.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {

struct Request;

/// What belongs to a request that is more than one message in transfer: a persistent one, or one that the program or
/// several messages complete. Deleted when the request is freed. MPI codes.
class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Of a persistent request: posts `request.engine`. Persistent collectives also fill `request.staging`.
  virtual int start(Request& request);
  /// Of a request with the flag `special`, once it is done: fills `status` (not null). May be called several times.
  virtual int describe(const canele_status_t& outcome, MPI_Status* status);
  /// Of the same: called once, after describe(), before the request is freed.
  virtual int end();
  virtual int cancel(bool is_done);
  /// Of a generalised request: MPI_Grequest_complete.
  virtual int complete(Request& request);
  /// Of a partitioned message: MPI_Pready of the partitions `first` to `last`, and MPI_Parrived. Any number of threads.
  virtual int make_ready(int first, int last);
  virtual int has_arrived(int partition, bool* arrived);
};

/// The first cache line of a request.
struct RequestHead {
  /// What completion has to do besides returning the slot. Usually no flag is set.
  enum Flag : std::uint8_t {
    proc_null = 1,    ///< MPI_PROC_NULL: complete from the start
    collective = 2,   ///< its results have to be delivered
    profiled = 4,     ///< `started` has to be notified
    typed = 8,        ///< the reference on `type` has to be dropped
    persistent = 16,  ///< is not freed at completion, but becomes inactive; has `work`
    inactive = 32,    ///< persistent, and not started; counts as a null request
    special = 64      ///< `work` tells its outcome
  };

  std::atomic<Communicator*> on{nullptr};  ///< null: free; atomic for mark_communicators_in_use only
  union {
    Request* next_free = nullptr;  ///< in the list of free requests that a thread keeps
    std::size_t room;              ///< of a pending receive: size of its buffer in bytes
  };
  std::uint8_t flags = 0;
  bool is_receive = false;
  profile::Started started;

  /// Puts the request to use; no handle names it yet.
  void begin(Communicator& comm, bool receive, std::uint8_t initial_flags) {
    on.store(&comm, std::memory_order_release);
    is_receive = receive;
    flags = initial_flags;
  }
  Communicator& comm() const { return *on.load(std::memory_order_relaxed); }
  bool has(Flag flag) const { return (flags & flag) != 0; }

  /// Ends the use of a persistent request, while other threads may ask for `flags_now()`. They see what has arrived.
  void make_inactive() {
    const auto ended = static_cast<std::uint8_t>((flags & ~profiled) | inactive);
    std::atomic_ref(flags).store(ended, std::memory_order_release);  // pairs with the acquire load in flags_now
  }
  std::uint8_t flags_now() { return std::atomic_ref(flags).load(std::memory_order_acquire); }
};

/// A request. For a collective, the transfer holds the engine's request only.
struct Request : RequestHead, Transfer {
  union {
    Type* type = nullptr;  ///< if `typed`
    Work* work;            ///< if `persistent` or `special`
  };
  Staging staging;  ///< of a collective

  static Request& of(canele_request_t& engine) { return static_cast<Request&>(reinterpret_cast<Transfer&>(engine)); }
};
static_assert(std::is_standard_layout_v<Transfer>);  // it begins with the engine's request
static_assert(sizeof(Request) + 16 == 9 * 64);  // a slot; an odd number of lines spreads slots over all sets of a cache

using RequestPool = HandlePool<Request, MPI_Request, Kind::request, 1, 32768>;
extern constinit RequestPool requests_pool;

/// The free requests of one thread. When they run out, it takes a batch from the pool. When there are too many, it
/// gives half of them back. At the end of the thread it gives all of them back.
///
///   take: first_ ──▶ request ──▶ request ──▶ null      none: a batch from the pool
///   give: first_ ──▶ the given one ──▶ ...             no room: half of them to the pool
class FreeRequests {
 public:
  static constexpr int kMost = 256, kBatch = 32;

  /// Takes a request that no handle names; nullptr if there is no memory.
  Request* take() { return first_ != nullptr ? take_cached() : take_from_pool(); }
  /// Takes a request that the thread keeps; nullptr if it keeps none.
  Request* take_cached() {
    Request* request = first_;
    if (request == nullptr) [[unlikely]]
      return nullptr;
    first_ = request->next_free;
    ++room_;
    return request;
  }
  void give(Request& request) {
    request.on.store(nullptr, std::memory_order_release);  // pairs with the acquire load in mark_communicators_in_use
    if (room_ == 0) [[unlikely]]
      return give_to_pool(request);
    request.next_free = first_;
    first_ = &request;
    --room_;
  }

  /// Called at the end of the thread, which keeps no requests from then on.
  void on_thread_exit();

 private:
  enum class Thread : std::uint8_t { fresh, joined, ended };

  [[gnu::cold]] Request* take_from_pool();
  [[gnu::cold]] void give_to_pool(Request& request);
  void give_half();
  bool join();

  Request* first_ = nullptr;
  int room_ = 0;  ///< how many more it may keep; 0 until the thread has joined
  Thread thread_ = Thread::fresh;
};
extern constinit thread_local FreeRequests free_requests;

/// The checked source or destination of a message.
struct Endpoint {
  Communicator* comm = nullptr;
  int world_rank = MPI_PROC_NULL;  ///< CANELE_ANY_SOURCE for MPI_ANY_SOURCE
  std::uint64_t tag = 0;
  std::uint64_t mask = CANELE_TAG_EXACT;

  bool is_proc_null() const { return world_rank == MPI_PROC_NULL; }
};
static_assert(MPI_PROC_NULL != CANELE_ANY_SOURCE);

/// These functions check the arguments of a call. They return MPI codes.
/// Checks the buffer of a message. A message to or from MPI_PROC_NULL needs no datatype.
int get_message(const Endpoint& endpoint, const void* memory, std::int64_t count, MPI_Datatype type, Buffer* buffer);
int get_destination(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);
int get_source(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);
int get_message(const void* memory, std::int64_t count, Type& type, Buffer* buffer);
/// Checks the array of requests of a call.
int check_list(int count, const MPI_Request* handles);
int get_destination(Communicator& comm, int rank, int tag, Endpoint* endpoint);
int get_source(Communicator& comm, int rank, int tag, Endpoint* endpoint);
int get_send(const void* memory, std::int64_t count, Type& type, int rank, int tag, Communicator& comm, Endpoint* to,
             Buffer* buffer);
int get_receive(void* memory, std::int64_t count, Type& type, int rank, int tag, Communicator& comm, Endpoint* from,
                Buffer* buffer);

/// These functions post a message. They return MPI codes.
int start_send(const Endpoint& to, const Buffer& buffer, bool synchronous, MPI_Request* handle);
int start_receive(const Endpoint& from, const Buffer& buffer, MPI_Request* handle);
/// Makes a request that is complete from the start, like that of a message to MPI_PROC_NULL.
int start_ended(Communicator& comm, MPI_Request* handle);

/// Makes a request for a collective. The caller starts it with `engine` and `staging`, and then calls publish_request.
int new_collective(Communicator& comm, Request** made);
/// Makes a request for a one-sided operation, in the same way.
int new_access(Communicator& comm, Request** made);
/// Makes an inactive persistent request, which start_again() starts. `flags` may be `collective` or `proc_null`.
int new_persistent(Communicator& comm, bool receive, std::uint8_t flags, std::unique_ptr<Work> work, Request** made);
/// Makes a request with the flag `special`, whose engine request the caller posts before publish_request.
int new_special(Communicator& comm, std::unique_ptr<Work> work, Request** made);
/// Starts a persistent request, which must be inactive.
int start_again(Request& request);
/// Begins the engine request of a request that no single message ends: release() ends it, once, from any thread, with
/// an error of the engine.
int hold(Request& request);
void release(Request& request, int error = CANELE_OK);
/// Frees a request that no handle names, and that the engine does not work on.
void drop_request(Request& request);
/// Returns the handle of a started request, or frees the request if `code` is an error. Returns `code`.
int publish_request(Request& request, int code, MPI_Request* handle);

/// Sets the detail for a handle that was not found. Returns an MPI code.
int reject_request(MPI_Request handle);

/// Finds the request of a live handle; nullptr for MPI_REQUEST_NULL. Returns an MPI code.
inline int get_request(MPI_Request handle, Request** found) {
  *found = handle == MPI_REQUEST_NULL ? nullptr : requests_pool.find(handle);
  return *found != nullptr || handle == MPI_REQUEST_NULL ? MPI_SUCCESS : reject_request(handle);
}

/// Like get_request, but an inactive request counts as null.
inline int get_active(MPI_Request handle, Request** found) {
  const int code = get_request(handle, found);
  if (*found != nullptr && (*found)->has(Request::inactive)) *found = nullptr;
  return code;
}

/// Does what the flags of a request demand at its completion.
void finish_flags(Request& request);

/// Returns the slot of a finalized request; its handle becomes stale.
inline void free_request(Request& request) {
  if (request.flags != 0) [[unlikely]]
    finish_flags(request);
  RequestPool::close(request);
  free_requests.give(request);
}

/// Returns true once the request is finalized; does not make progress.
inline bool is_done(Request& request) {
  canele_request_t* const one = &request.engine;
  return request.has(Request::proc_null) || canele_find_done(1, &one, 0) == 0;
}
/// Returns the outcome of a request that is done.
canele_status_t outcome_of(const Request& request);

/// Translates the outcome of a finalized request into `status` (may be MPI_STATUS_IGNORE). Returns its MPI code.
int describe(Request& request, const canele_status_t& outcome, MPI_Status* status);
/// Like describe(), and ends this use of the request: frees it and sets *handle to null, or makes it inactive.
int finish(Request& request, const canele_status_t& outcome, MPI_Request* handle, MPI_Status* status);

/// Waits for the request of a blocking call. No other thread has its handle.
int wait_and_finish(MPI_Request* handle, MPI_Status* status);

/// Delivers the results of a finalized collective, or tells why it failed. Returns an MPI code.
int complete_collective(const canele_status_t& outcome, const Staging& staging);

/// Frees the request as soon as it is finalized. Not for collectives: MPI_ERR_REQUEST.
int abandon(Request& request);

/// Calls Communicator::mark_in_use() of each communicator that a request is on.
void mark_communicators_in_use();

void fill_status(const Communicator& comm, const canele_status_t& outcome, MPI_Status* status);
/// Corrects the status after fill_status() if the message may have been longer than its receive. Only the first `room`
/// bytes were received.
void limit_size(const canele_status_t& outcome, std::size_t room, MPI_Status* status);
void fill_empty_status(MPI_Status* status);
/// Sets the error of one of several statuses. A call that returns one status must leave it alone (MPI-3.1, 3.2.5).
inline void set_error(MPI_Status* status, int code) {
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
}
void fill_proc_null_status(MPI_Status* status);
/// Returns one of several statuses, which may be MPI_STATUSES_IGNORE.
inline MPI_Status* status_at(MPI_Status* statuses, std::size_t index) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + index;
}

}  // namespace canele::mpi
