// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Wait to MPI_Request_free: completion of non-blocking requests.
//
// The functions for several requests make progress once and then only check, so N requests cost one poll. MPI_Wait,
// MPI_Waitall and MPI_Test have a fast path and a slow path, see fast_path.hpp. Called from any thread, by one
// thread at a time per request.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/fast_path.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

/// Stands for a message to or from MPI_PROC_NULL: a null request, which is complete.
constinit canele_request_t ended_already{};

/// Returns the request that the engine waits for; NULL for MPI_REQUEST_NULL.
canele_request_t* engine_request(Request* request) {
  if (request == nullptr) return nullptr;
  return request->has(Request::proc_null) ? &ended_already : &request->engine;
}

/// The requests of a call, looked up once.
class Selection {
 public:
  Selection() = default;
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  int collect(int count, const MPI_Request* handles) {
    if (count < 0) return fail(MPI_ERR_COUNT, "count is %d; expected: at least 0", count);
    size_ = static_cast<std::size_t>(count);
    if (size_ > few) {
      many_.reset(new (std::nothrow) canele_request_t*[size_]);
      if (many_ == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for a list of %zu requests", size_);
      entries_ = many_.get();
    }
    for (std::size_t i = 0; i < size_; ++i) {
      Request* request = nullptr;
      if (const int code = get_active(handles[i], &request); code != MPI_SUCCESS) return code;
      entries_[i] = engine_request(request);
      if (request == nullptr) continue;
      first_ = first_ == nullptr ? request : first_;
    }
    return MPI_SUCCESS;
  }

  std::size_t size() const { return size_; }
  /// Returns the list of requests for the engine to wait for.
  canele_request_t* const* for_engine() const { return entries_; }
  bool empty() const { return first_ == nullptr; }
  /// Returns the error handler that applies. Called while the communicator still exists.
  ErrorTarget error_target() const {
    return empty() ? ErrorTarget{MPI_ERRORS_RETURN, nullptr} : first_->comm().error_target();
  }

 private:
  static constexpr std::size_t few = 64;

  std::size_t size_ = 0;
  Request* first_ = nullptr;
  canele_request_t** entries_ = few_;
  std::unique_ptr<canele_request_t*[]> many_;
  canele_request_t* few_[few];  // enough for most calls; not initialised: 64 stores would cost more than most calls
};

/// Where the calling thread's next scan of a list begins: behind the last request that it has found.
struct LastFound {
  const MPI_Request* list = nullptr;
  int place = 0;
};
constinit thread_local LastFound last_found;

/// Scans requests, each once, until one is done. Scans in blocks: while the engine checks one request, the cache lines
/// of the others in the block are being fetched.
class Scan {
 public:
  explicit Scan(MPI_Request* handles) : handles_(handles) {}

  /// Scans from index `first` to `last`. Sets *found to the index of one that is done, else to `last`. Returns an MPI
  /// code.
  int find_done(int first, int last, int* found) {
    for (int begin = first; begin < last;) {
      const int size = std::min(last - begin, most);
      canele_request_t* entries[most];
      for (int i = 0; i < size; ++i) {
        Request* request = nullptr;
        if (const int code = get_active(handles_[begin + i], &request); code != MPI_SUCCESS) return code;
        entries[i] = engine_request(request);
        if (request == nullptr) continue;
        live_ = request;
      }
      const auto length = static_cast<std::size_t>(size);
      if (const std::size_t place = canele_find_done(length, entries, 0); place < length) {
        *found = begin + static_cast<int>(place);
        return MPI_SUCCESS;
      }
      begin += size;
    }
    *found = last;
    return MPI_SUCCESS;
  }

  /// Returns any request that was scanned; nullptr if all were MPI_REQUEST_NULL.
  Request* live() const { return live_; }

  static constexpr int most = 64;  ///< requests in a block

 private:
  MPI_Request* handles_;
  Request* live_ = nullptr;
};

/// Returns the index at which the next scan of the list begins.
int first_place(int count, const MPI_Request* handles) {
  return last_found.list == handles && last_found.place < count ? last_found.place : 0;
}

/// Scans the whole list, beginning behind the last request found. Sets *found to `count` if none is done, and *live to
/// nullptr if all handles are null.
int find_done(int count, MPI_Request* handles, int* found, Request** live) {
  const int from = first_place(count, handles);
  Scan scan(handles);
  int code = scan.find_done(from, count, found);
  if (code == MPI_SUCCESS && *found == count) {
    code = scan.find_done(0, from, found);
    if (code == MPI_SUCCESS && *found == from) *found = count;
  }
  if (code == MPI_SUCCESS && *found < count) last_found = {handles, *found + 1};
  *live = scan.live();
  return code;
}

/// Like find_done, but scans only the next block of requests: most often one of them is done.
int find_next(int count, MPI_Request* handles, int* found, Request** live) {
  const int from = first_place(count, handles), end = std::min(count, from + Scan::most);
  Scan scan(handles);
  const int code = scan.find_done(from, end, found);
  if (code == MPI_SUCCESS && *found < end) last_found = {handles, *found + 1};
  if (code == MPI_SUCCESS && *found == end) *found = count;
  *live = scan.live();
  return code;
}

/// Makes progress once, or tests `pending` if a worker is active: contending with the worker would only slow it down.
/// Yields the core if other threads want it. Returns false if nothing can have changed.
bool poll_once(Request& pending) {
  if (canele_worker_active(engine()) == 0) return canele_progress(engine()) != 0;
  int done = 0;
  canele_test(&pending.engine, &done, nullptr);
  return done != 0;
}

[[noreturn]] void blocked_in_callback() { fatal("a call that blocks was made inside a completion callback"); }

/// Blocks until one of the requests is done; at least one must be live. Returns an MPI code.
int wait_for_one(int count, MPI_Request* handles, int* found) {
  Selection selection;
  if (const int code = selection.collect(count, handles); code != MPI_SUCCESS) return code;
  std::size_t index = 0;
  if (canele_wait_any(selection.size(), selection.for_engine(), &index, nullptr) == CANELE_EDEADLK) {
    blocked_in_callback();
  }
  *found = static_cast<int>(index);
  last_found = {handles, *found + 1};
  return MPI_SUCCESS;
}

/// Returns the code for a failed request among several, with a detail that names the request and the reason.
int in_status(std::size_t index, int code) {
  char text[MPI_MAX_ERROR_STRING];
  describe_error(code, text, sizeof text);
  return fail(MPI_ERR_IN_STATUS, "request %zu: %s", index, text);
}

/// Finishes every request that is done, from index `found` on, which is done. Returns MPI_ERR_IN_STATUS if one failed.
int finish_done(int count, MPI_Request* handles, int found, int* done, int* indices, MPI_Status* statuses) {
  int code = MPI_SUCCESS;
  Scan scan(handles);
  for (*done = 0; found < count;) {
    Request* request = nullptr;
    get_active(handles[found], &request);
    MPI_Status* const status = status_at(statuses, static_cast<std::size_t>(*done));
    const int own = finish(*request, outcome_of(*request), &handles[found], status);
    set_error(status, own);
    if (own != MPI_SUCCESS) code = in_status(static_cast<std::size_t>(found), own);
    indices[(*done)++] = found;
    if (const int wrong = scan.find_done(found + 1, count, &found); wrong != MPI_SUCCESS) return wrong;
  }
  return code;
}

/// Finishes all requests. They are done, and their handles have been looked up before.
int finish_all(int count, MPI_Request* handles, MPI_Status* statuses) {
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    MPI_Status* const status = status_at(statuses, static_cast<std::size_t>(i));
    Request* request = nullptr;
    int own = get_active(handles[i], &request);  // fails if the program gave the handle twice in one call
    if (request == nullptr) {
      fill_empty_status(status);
      if (own != MPI_SUCCESS) handles[i] = MPI_REQUEST_NULL;  // else it is null or inactive
    } else {
      own = finish(*request, outcome_of(*request), &handles[i], status);
    }
    set_error(status, own);
    if (own != MPI_SUCCESS) code = in_status(static_cast<std::size_t>(i), own);
  }
  return code;
}

/// Waits for a persistent message or collective, which then becomes inactive. Returns false, with no effect on the
/// request, if it is none, has failed, or tells its status by its work (partitioned messages).
bool wait_persistent(MPI_Request handle, MPI_Status* status) {
  Request* request = requests_pool.find(handle);
  const std::uint8_t others = Request::collective | (status == MPI_STATUS_IGNORE ? Request::special : 0);
  if (request == nullptr || (request->flags & ~others) != Request::persistent || !may_wait_fast()) return false;
  canele_status_t outcome;
  if (canele_wait(&request->engine, status == MPI_STATUS_IGNORE ? nullptr : &outcome) != CANELE_OK) return false;
  if (status != MPI_STATUS_IGNORE) fill_fast_status(*request, outcome, status);
  if (request->has(Request::collective)) request->staging.deliver();
  request->make_inactive();
  return true;
}

[[gnu::noinline]] int wait_slow(MPI_Request* handle, MPI_Status* status) {
  if (handle != nullptr && wait_persistent(*handle, status)) return MPI_SUCCESS;
  const Call call("MPI_Wait");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", handle}}); code != MPI_SUCCESS) return call.end(code);
  Request* request = nullptr;
  int code = get_active(*handle, &request);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->has(Request::proc_null)) request->wait(&outcome);
  const ErrorTarget target = request->comm().error_target();
  code = finish(*request, outcome, handle, status);
  return call.end_with(code, target);
}

/// Waits for persistent messages, which then become inactive. Returns false, with no effect on the requests, if one is
/// none, or has failed, or if there are many.
bool wait_all_persistent(int count, const MPI_Request* handles) {
  constexpr int few = 64;
  if (count < 1 || count > few || !may_wait_fast()) return false;
  canele_request_t* engines[few];
  for (int i = 0; i < count; ++i) {
    Request* const request = requests_pool.find(handles[i]);
    if (request == nullptr || (request->flags & ~Request::special) != Request::persistent) return false;
    engines[i] = &request->engine;
  }
  if (canele_wait_all(static_cast<std::size_t>(count), engines, nullptr) != CANELE_OK) return false;
  for (int i = 0; i < count; ++i) Request::of(*engines[i]).make_inactive();
  return true;
}

[[gnu::noinline]] int wait_all_slow(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (statuses == MPI_STATUSES_IGNORE && requests != nullptr && wait_all_persistent(count, requests))
    return MPI_SUCCESS;
  const Call call("MPI_Waitall");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = check_list(count, requests); code != MPI_SUCCESS) return call.end(code);
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  const ErrorTarget target = selection.error_target();
  if (canele_wait_all(selection.size(), selection.for_engine(), nullptr) == CANELE_EDEADLK) blocked_in_callback();
  code = finish_all(count, requests, statuses);
  return call.end_with(code, target);
}

[[gnu::noinline]] int test_slow(MPI_Request* handle, int* flag, MPI_Status* status) {
  const Call call("MPI_Test");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", handle}, {"flag", flag}}); code != MPI_SUCCESS) return call.end(code);
  Request* request = nullptr;
  if (const int code = get_active(*handle, &request); code != MPI_SUCCESS) return call.end(code);
  *flag = 1;
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->has(Request::proc_null)) {
    const int error = canele_test(&request->engine, flag, &outcome);
    if (error != CANELE_OK && *flag == 0) return call.end(from_engine(error), &request->comm());
  }
  if (*flag == 0) return MPI_SUCCESS;
  const ErrorTarget target = request->comm().error_target();
  const int code = finish(*request, outcome, handle, status);
  return call.end_with(code, target);
}

/// Looks for a request that is done: first in the next block, then in the whole list. For a long list it polls before
/// the second scan. If it may block, it then polls for a while, because a poll costs less than another scan. Setting up
/// a wait for many requests is costly, too. Sets *found to `count` if none is done, and *live to nullptr if there is no
/// request.
int find_one(int count, MPI_Request* handles, bool block, int* found, Request** live) {
  constexpr int most_polls = 64;
  const bool many = count > Scan::most;
  int code = many ? find_next(count, handles, found, live) : find_done(count, handles, found, live);
  if (code != MPI_SUCCESS || *found < count) return code;
  const bool polled = many && *live != nullptr;
  if (polled) poll_once(**live);
  if (many) code = find_done(count, handles, found, live);
  if (code != MPI_SUCCESS || *found < count || *live == nullptr) return code;
  if (!block) return polled || !poll_once(**live) ? code : find_done(count, handles, found, live);
  for (int polls = 0; many && polls < most_polls; ++polls) {
    if (!poll_once(**live)) continue;
    code = find_done(count, handles, found, live);
    if (code != MPI_SUCCESS || *found < count) return code;
  }
  return wait_for_one(count, handles, found);
}

int complete_some(const Call& call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses,
                  bool block) {
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = check_list(count, requests);
  if (code == MPI_SUCCESS) code = given({{"outcount", done}});
  if (code == MPI_SUCCESS && count > 0) code = given({{"array of indices", indices}});
  if (code == MPI_SUCCESS && block) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  int found = 0;
  Request* live = nullptr;
  last_found = {};  // the result lists all that are done, in the order of the array
  code = find_one(count, requests, block, &found, &live);
  if (code != MPI_SUCCESS) return call.end(code);
  *done = live == nullptr ? MPI_UNDEFINED : 0;
  if (live == nullptr) return MPI_SUCCESS;
  const ErrorTarget target = live->comm().error_target();
  if (block) code = Scan(requests).find_done(0, count, &found);  // other requests may have completed meanwhile
  if (code == MPI_SUCCESS) code = finish_done(count, requests, found, done, indices, statuses);
  return call.end_with(code, target);
}

int complete_any(const Call& call, int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status,
                 bool block) {
  int found = 0;
  Request* live = nullptr;
  int code = find_one(count, requests, block, &found, &live);
  if (code != MPI_SUCCESS) return call.end(code);
  *index = MPI_UNDEFINED;
  *flag = live == nullptr || found < count ? 1 : 0;
  if (live == nullptr) fill_empty_status(status);
  if (live == nullptr || *flag == 0) return MPI_SUCCESS;
  get_active(requests[found], &live);
  const ErrorTarget target = live->comm().error_target();
  *index = found;
  code = finish(*live, outcome_of(*live), &requests[found], status);
  return call.end_with(code, target);
}

/// Finds the first request from index `first` on that is not done. Sets *found to its index, or to `count` if all are
/// done. Sets *live to that request, or else to the last one scanned. Returns an MPI code.
int find_pending(int count, const MPI_Request* handles, int first, int* found, Request** live) {
  for (*found = first; *found < count; ++*found) {
    Request* request = nullptr;
    if (const int code = get_active(handles[*found], &request); code != MPI_SUCCESS) return code;
    if (request == nullptr) continue;
    *live = request;
    if (!is_done(*request)) return MPI_SUCCESS;
  }
  return MPI_SUCCESS;
}

/// Finds a request that is not done in the whole list, beginning where the thread's last scan ended.
int find_pending(int count, const MPI_Request* handles, int* found, Request** pending) {
  const int from = first_place(count, handles);
  int code = find_pending(count, handles, from, found, pending);
  if (code == MPI_SUCCESS && *found == count && from > 0) code = find_pending(count, handles, 0, found, pending);
  last_found = {handles, *found};
  return code;
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Wait(MPI_Request* handle, MPI_Status* status) {
  Request* request = handle != nullptr ? find_fast(*handle) : nullptr;
  if (request != nullptr && may_wait_fast()) [[likely]] {
    canele_status_t outcome;
    if (canele_wait(&request->engine, status == MPI_STATUS_IGNORE ? nullptr : &outcome) == CANELE_OK) [[likely]] {
      if (status != MPI_STATUS_IGNORE) fill_fast_status(*request, outcome, status);
      free_fast(*request, handle);
      return MPI_SUCCESS;
    }
  }
  return wait_slow(handle, status);
}
CANELE_MPI_NAME(Wait);

extern "C" int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (statuses == MPI_STATUSES_IGNORE && requests != nullptr && may_wait_fast() && wait_fast(count, requests))
      [[likely]]
    return MPI_SUCCESS;
  return wait_all_slow(count, requests, statuses);
}
CANELE_MPI_NAME(Waitall);

extern "C" int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const Call call("MPI_Waitany");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = check_list(count, requests);
  if (code == MPI_SUCCESS) code = given({{"index", index}});
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  int flag = 0;
  return complete_any(call, count, requests, index, &flag, status, true);
}
CANELE_MPI_NAME(Waitany);

extern "C" int PMPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  return complete_some(Call("MPI_Waitsome"), count, requests, done, indices, statuses, true);
}
CANELE_MPI_NAME(Waitsome);

extern "C" int PMPI_Test(MPI_Request* handle, int* flag, MPI_Status* status) {
  Request* request = handle != nullptr && flag != nullptr ? find_fast(*handle) : nullptr;
  if (request != nullptr && fast_world() != nullptr) [[likely]] {
    canele_status_t outcome;
    const int error = canele_test(&request->engine, flag, &outcome);
    if (error == CANELE_OK && *flag == 0) return MPI_SUCCESS;
    if (error == CANELE_OK && outcome.error == CANELE_OK) [[likely]] {
      fill_fast_status(*request, outcome, status);
      free_fast(*request, handle);
      return MPI_SUCCESS;
    }
  }
  return test_slow(handle, flag, status);
}
CANELE_MPI_NAME(Test);

extern "C" int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const Call call("MPI_Testall");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = check_list(count, requests);
  if (code == MPI_SUCCESS) code = given({{"flag", flag}});
  if (code != MPI_SUCCESS) return call.end(code);
  int found = 0;
  Request* pending = nullptr;
  code = find_pending(count, requests, &found, &pending);
  if (code == MPI_SUCCESS && found < count && poll_once(*pending)) {
    code = find_pending(count, requests, &found, &pending);
  }
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = found == count ? 1 : 0;
  if (*flag == 0) return MPI_SUCCESS;
  const ErrorTarget target =
      pending == nullptr ? ErrorTarget{MPI_ERRORS_RETURN, nullptr} : pending->comm().error_target();
  code = finish_all(count, requests, statuses);
  return call.end_with(code, target);
}
CANELE_MPI_NAME(Testall);

extern "C" int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const Call call("MPI_Testany");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = check_list(count, requests);
  if (code == MPI_SUCCESS) code = given({{"index", index}, {"flag", flag}});
  if (code != MPI_SUCCESS) return call.end(code);
  return complete_any(call, count, requests, index, flag, status, false);
}
CANELE_MPI_NAME(Testany);

extern "C" int PMPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  return complete_some(Call("MPI_Testsome"), count, requests, done, indices, statuses, false);
}
CANELE_MPI_NAME(Testsome);

extern "C" int PMPI_Cancel(MPI_Request* handle) {
  const Call call("MPI_Cancel");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", handle}}); code != MPI_SUCCESS) return call.end(code);
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  if (request->has(Request::inactive)) code = fail(MPI_ERR_REQUEST, "the request is not active");
  if (code == MPI_SUCCESS && request->has(Request::special)) code = request->work->cancel(is_done(*request));
  if (request->has(Request::collective)) code = fail(MPI_ERR_REQUEST, "a collective cannot be cancelled; wait for it");
  // A send is never cancelled. MPI allows it to complete as if MPI_Cancel had not been called.
  if (code == MPI_SUCCESS && request->is_receive && !request->has(Request::proc_null))
    code = from_engine(canele_cancel(&request->engine));
  return call.end(code, &request->comm());
}
CANELE_MPI_NAME(Cancel);

extern "C" int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  const Call call("MPI_Test_cancelled");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"status", status}, {"flag", flag}}); code != MPI_SUCCESS) return call.end(code);
  *flag = status->cancelled;
  return call.end(MPI_SUCCESS);
}
CANELE_MPI_NAME(Test_cancelled);

extern "C" int PMPI_Request_free(MPI_Request* handle) {
  const Call call("MPI_Request_free");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"request", handle}}); code != MPI_SUCCESS) return call.end(code);
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  const ErrorTarget target = request->comm().error_target();
  code = abandon(*request);
  if (code == MPI_SUCCESS) *handle = MPI_REQUEST_NULL;
  return call.end_with(code, target);
}
CANELE_MPI_NAME(Request_free);
