// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Wait to MPI_Request_free: completion of non-blocking requests.
//
// Who: the program. Threads: any; one at a time per request.
// Surprise: the functions for several requests make progress once, then only look: N requests cost one poll. MPI_Wait,
//     _Waitall and _Test are here twice, see short_way.hpp.
#include <cstddef>
#include <memory>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/request.hpp"
#include "starpu_glue/mpi/short_way.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {
namespace {

/// The requests of a call, looked up once.
class Selection {
 public:
  Selection() = default;
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  int collect(int count, const MPI_Request* handles) {
    if (count < 0) return fail(MPI_ERR_COUNT, "count is %d; it must be at least 0", count);
    size_ = static_cast<std::size_t>(count);
    if (size_ > few) {
      many_ = std::make_unique<canele_request_t*[]>(size_);
      entries_ = many_.get();
    }
    for (std::size_t i = 0; i < size_; ++i) {
      Request* request = nullptr;
      if (const int code = get_request(handles[i], &request); code != MPI_SUCCESS) return code;
      entries_[i] = request == nullptr ? nullptr : &request->engine;
      if (request == nullptr) continue;
      first_ = first_ == nullptr ? request : first_;
    }
    return MPI_SUCCESS;
  }

  std::size_t size() const { return size_; }
  /// What the engine waits for: null for MPI_REQUEST_NULL. That of a message to nobody has ended long ago.
  canele_request_t* const* for_engine() const { return entries_; }
  /// Entry i, null for MPI_REQUEST_NULL.
  Request* operator[](std::size_t i) const { return entries_[i] == nullptr ? nullptr : &Request::of(*entries_[i]); }
  bool empty() const { return first_ == nullptr; }
  /// The error handler that counts, asked for while the communicator is there.
  MPI_Errhandler error_handler() const { return empty() ? MPI_ERRORS_RETURN : first_->comm().error_handler(); }

 private:
  static constexpr std::size_t few = 64;

  std::size_t size_ = 0;
  Request* first_ = nullptr;
  canele_request_t** entries_ = few_;
  std::unique_ptr<canele_request_t*[]> many_;
  canele_request_t* few_[few];  // those of most calls; not initialised: 64 stores would cost more than most calls
};

MPI_Status* entry(MPI_Status* statuses, std::size_t i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// Makes progress once, where no worker does: contending with it would only slow it down.
void poll_once() {
  if (canele_worker_active(engine()) == 0) canele_progress(engine());
}

[[noreturn]] void blocked_in_callback() { fatal("a call that blocks was made inside a completion callback"); }

/// Blocks until one of the requests is done (there is one).
void wait_for_one(const Selection& selection) {
  std::size_t index = 0;
  if (canele_wait_any(selection.size(), selection.for_engine(), &index, nullptr) == CANELE_EDEADLK) {
    blocked_in_callback();
  }
}

/// The code for a failed request among several, with a detail that says which and why.
int in_status(std::size_t index, int code) {
  char text[MPI_MAX_ERROR_STRING];
  describe_error(code, text, sizeof text);
  return fail(MPI_ERR_IN_STATUS, "request %zu: %s", index, text);
}

/// Finishes every request that is done. MPI_ERR_IN_STATUS if one of them failed.
int finish_done(const Selection& selection, MPI_Request* handles, int* done, int* indices, MPI_Status* statuses) {
  int code = MPI_SUCCESS;
  *done = 0;
  for (std::size_t i = 0; i < selection.size(); ++i) {
    canele_status_t outcome{};
    if (selection[i] == nullptr || !is_done(*selection[i], &outcome)) continue;
    const auto position = static_cast<std::size_t>(*done);
    const int own = finish(*selection[i], outcome, &handles[i], entry(statuses, position));
    if (own != MPI_SUCCESS) code = in_status(i, own);
    indices[(*done)++] = static_cast<int>(i);
  }
  return code;
}

/// Finishes the first request that is done; *index is MPI_UNDEFINED if there is none.
int finish_one(const Selection& selection, MPI_Request* handles, int* index, MPI_Status* status) {
  *index = MPI_UNDEFINED;
  for (std::size_t i = 0; i < selection.size(); ++i) {
    canele_status_t outcome{};
    if (selection[i] == nullptr || !is_done(*selection[i], &outcome)) continue;
    *index = static_cast<int>(i);
    return finish(*selection[i], outcome, &handles[i], status);
  }
  return MPI_SUCCESS;
}

/// Finishes all of them; they are done.
int finish_all(const Selection& selection, MPI_Request* handles, MPI_Status* statuses) {
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < selection.size(); ++i) {
    if (selection[i] == nullptr) {
      fill_empty_status(entry(statuses, i));
      continue;
    }
    canele_status_t outcome{};
    is_done(*selection[i], &outcome);
    const int own = finish(*selection[i], outcome, &handles[i], entry(statuses, i));
    if (own != MPI_SUCCESS) code = in_status(i, own);
  }
  return code;
}

[[gnu::noinline]] int wait_carefully(MPI_Request* handle, MPI_Status* status) {
  const Call call("MPI_Wait");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->must(Request::nobody)) request->wait(&outcome);
  const MPI_Errhandler handler = request->comm().error_handler();
  code = finish(*request, outcome, handle, status);
  return call.end_with(code, handler);
}

[[gnu::noinline]] int wait_all_carefully(int count, MPI_Request* requests, MPI_Status* statuses) {
  const Call call("MPI_Waitall");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  const MPI_Errhandler handler = selection.error_handler();
  if (canele_wait_all(selection.size(), selection.for_engine(), nullptr) == CANELE_EDEADLK) blocked_in_callback();
  code = finish_all(selection, requests, statuses);
  return call.end_with(code, handler);
}

[[gnu::noinline]] int test_carefully(MPI_Request* handle, int* flag, MPI_Status* status) {
  const Call call("MPI_Test");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Request* request = nullptr;
  if (const int code = get_request(*handle, &request); code != MPI_SUCCESS) return call.end(code);
  *flag = 1;
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->must(Request::nobody)) {
    const int error = canele_test(&request->engine, flag, &outcome);
    if (error != CANELE_OK && *flag == 0) return call.end(from_engine(error), &request->comm());
  }
  if (*flag == 0) return MPI_SUCCESS;
  const MPI_Errhandler handler = request->comm().error_handler();
  const int code = finish(*request, outcome, handle, status);
  return call.end_with(code, handler);
}

int wait_some(const Call& call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses,
              bool block) {
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS && block) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (selection.empty()) {
    *done = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  const MPI_Errhandler handler = selection.error_handler();
  if (block) {
    wait_for_one(selection);
  } else {
    poll_once();
  }
  code = finish_done(selection, requests, done, indices, statuses);
  return call.end_with(code, handler);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Wait(MPI_Request* handle, MPI_Status* status) {
  Request* request = find_usual(*handle);
  if (request != nullptr && may_wait_shortly()) [[likely]] {
    canele_status_t outcome;
    if (canele_wait(&request->engine, status == MPI_STATUS_IGNORE ? nullptr : &outcome) == CANELE_OK) [[likely]] {
      if (status != MPI_STATUS_IGNORE) fill_usual_status(*request, outcome, status);
      free_usual(*request, handle);
      return MPI_SUCCESS;
    }
  }
  return wait_carefully(handle, status);
}
CANELE_MPI_NAME(Wait);

extern "C" int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (statuses == MPI_STATUSES_IGNORE && may_wait_shortly() && wait_shortly(count, requests)) [[likely]]
    return MPI_SUCCESS;
  return wait_all_carefully(count, requests, statuses);
}
CANELE_MPI_NAME(Waitall);

extern "C" int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const Call call("MPI_Waitany");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (selection.empty()) {
    *index = MPI_UNDEFINED;
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  const MPI_Errhandler handler = selection.error_handler();
  wait_for_one(selection);
  code = finish_one(selection, requests, index, status);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Waitany);

extern "C" int PMPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  return wait_some(Call("MPI_Waitsome"), count, requests, done, indices, statuses, true);
}
CANELE_MPI_NAME(Waitsome);

extern "C" int PMPI_Test(MPI_Request* handle, int* flag, MPI_Status* status) {
  Request* request = find_usual(*handle);
  if (request != nullptr && plain_world() != nullptr) [[likely]] {
    canele_status_t outcome;
    const int error = canele_test(&request->engine, flag, &outcome);
    if (error == CANELE_OK && *flag == 0) return MPI_SUCCESS;
    if (error == CANELE_OK && outcome.error == CANELE_OK) [[likely]] {
      fill_usual_status(*request, outcome, status);
      free_usual(*request, handle);
      return MPI_SUCCESS;
    }
  }
  return test_carefully(handle, flag, status);
}
CANELE_MPI_NAME(Test);

extern "C" int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const Call call("MPI_Testall");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Selection selection;
  int code = selection.collect(count, requests);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = 0;
  if (!selection.empty()) poll_once();
  for (std::size_t i = 0; i < selection.size(); ++i) {
    canele_status_t outcome{};
    if (selection[i] != nullptr && !is_done(*selection[i], &outcome)) return MPI_SUCCESS;
  }
  *flag = 1;
  const MPI_Errhandler handler = selection.error_handler();
  code = finish_all(selection, requests, statuses);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Testall);

extern "C" int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const Call call("MPI_Testany");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Selection selection;
  int code = selection.collect(count, requests);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = 1;
  *index = MPI_UNDEFINED;
  if (selection.empty()) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  const MPI_Errhandler handler = selection.error_handler();
  poll_once();
  code = finish_one(selection, requests, index, status);
  *flag = *index != MPI_UNDEFINED ? 1 : 0;
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Testany);

extern "C" int PMPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  return wait_some(Call("MPI_Testsome"), count, requests, done, indices, statuses, false);
}
CANELE_MPI_NAME(Testsome);

extern "C" int PMPI_Cancel(MPI_Request* handle) {
  const Call call("MPI_Cancel");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  if (request->must(Request::collective)) code = fail(MPI_ERR_REQUEST, "a collective cannot be cancelled; wait for it");
  // A send is never cancelled: MPI lets it complete as if nothing had been asked.
  if (request->is_receive && !request->must(Request::nobody)) code = from_engine(canele_cancel(&request->engine));
  return call.end(code, &request->comm());
}
CANELE_MPI_NAME(Cancel);

extern "C" int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  const Call call("MPI_Test_cancelled");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  *flag = status->cancelled;
  return call.end(MPI_SUCCESS);
}
CANELE_MPI_NAME(Test_cancelled);

extern "C" int PMPI_Request_free(MPI_Request* handle) {
  const Call call("MPI_Request_free");
  if (call.refused()) [[unlikely]]
    return call.end(refuse_in_child());
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  const MPI_Errhandler handler = request->comm().error_handler();
  code = abandon(*request);
  if (code == MPI_SUCCESS) *handle = MPI_REQUEST_NULL;
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Request_free);
