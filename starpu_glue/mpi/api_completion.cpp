// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Wait to MPI_Request_free: completion of non-blocking requests.
//
// Who: the program. Threads: any; one at a time per request.
// Surprise: the functions for several requests make progress once, then only look: N requests cost one poll.
#include <cstddef>
#include <memory>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/request.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {
namespace {

/// As many pointers as the caller has requests; those of most calls are on the stack.
template <typename T>
class Pointers {
 public:
  Pointers() = default;
  Pointers(const Pointers&) = delete;
  Pointers& operator=(const Pointers&) = delete;

  void resize(std::size_t size) {
    if (size > few) many_ = std::make_unique<T*[]>(size);
    size_ = size;
  }
  std::size_t size() const { return size_; }
  T** data() { return many_ != nullptr ? many_.get() : few_; }
  T* const* data() const { return many_ != nullptr ? many_.get() : few_; }
  T* const* begin() const { return data(); }
  T* const* end() const { return data() + size_; }
  T*& operator[](std::size_t i) { return data()[i]; }
  T* operator[](std::size_t i) const { return data()[i]; }

 private:
  static constexpr std::size_t few = 64;
  std::size_t size_ = 0;
  std::unique_ptr<T*[]> many_;
  T* few_[few];  // not initialised: 64 stores would cost more than most calls
};

/// The requests of a call, looked up once. Entry i is null for MPI_REQUEST_NULL.
class Selection {
 public:
  int collect(int count, const MPI_Request* handles) {
    if (count < 0) return fail(MPI_ERR_COUNT, "count is %d; it must be at least 0", count);
    requests_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (const int code = get_request(handles[i], &requests_[i]); code != MPI_SUCCESS) return code;
      if (requests_[i] != nullptr) ++active_;
    }
    return MPI_SUCCESS;
  }

  std::size_t size() const { return requests_.size(); }
  std::size_t active() const { return active_; }
  Request* operator[](std::size_t i) const { return requests_[i]; }
  Communicator* comm() const {
    for (const Request* request : requests_) {
      if (request != nullptr) return request->comm;
    }
    return nullptr;
  }

  /// What the engine waits for: null entries are skipped by it.
  void list_for_engine(Pointers<canele_request_t>* pointers) const {
    pointers->resize(requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const bool pending = requests_[i] != nullptr && !requests_[i]->to_nobody;
      (*pointers)[i] = pending ? &requests_[i]->transfer.engine : nullptr;
    }
  }

  bool has_immediate() const {
    for (const Request* request : requests_) {
      if (request != nullptr && request->to_nobody) return true;
    }
    return false;
  }

 private:
  Pointers<Request> requests_;
  std::size_t active_ = 0;
};

MPI_Status* entry(MPI_Status* statuses, std::size_t i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// Makes progress once, where no worker does: contending with it would only slow it down.
void poll_once() {
  if (canele_worker_active(engine()) == 0) canele_progress(engine());
}

/// Blocks until one of the requests is done (at least one is active).
void wait_for_one(const Selection& selection) {
  if (selection.has_immediate()) return;
  Pointers<canele_request_t> pointers;
  selection.list_for_engine(&pointers);
  std::size_t index = 0;
  if (canele_wait_any(pointers.size(), pointers.data(), &index, nullptr) == CANELE_EDEADLK) {
    fatal("a call that blocks was made inside a completion callback");
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

int wait_some(const Call& call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses,
              bool block) {
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS && block) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (selection.active() == 0) {
    *done = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  Communicator* comm = selection.comm();
  const MPI_Errhandler handler = comm->error_handler();
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
  const Call call("MPI_Wait");
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->to_nobody) request->transfer.wait(&outcome);
  const MPI_Errhandler handler = request->comm->error_handler();
  code = finish(*request, outcome, handle, status);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Wait);

extern "C" int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const Call call("MPI_Waitall");
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  Communicator* comm = selection.comm();
  const MPI_Errhandler handler = comm == nullptr ? MPI_ERRORS_RETURN : comm->error_handler();
  if (comm != nullptr) {
    Pointers<canele_request_t> pointers;
    selection.list_for_engine(&pointers);
    if (canele_wait_all(pointers.size(), pointers.data(), nullptr) == CANELE_EDEADLK) {
      fatal("a call that blocks was made inside a completion callback");
    }
  }
  code = finish_all(selection, requests, statuses);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Waitall);

extern "C" int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const Call call("MPI_Waitany");
  Selection selection;
  int code = selection.collect(count, requests);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code);
  if (selection.active() == 0) {
    *index = MPI_UNDEFINED;
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  const MPI_Errhandler handler = selection.comm()->error_handler();
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
  const Call call("MPI_Test");
  Request* request = nullptr;
  if (const int code = get_request(*handle, &request); code != MPI_SUCCESS) return call.end(code);
  *flag = 1;
  if (request == nullptr) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  if (!request->to_nobody) {
    const int error = canele_test(&request->transfer.engine, flag, &outcome);
    if (error != CANELE_OK && *flag == 0) return call.end(from_engine(error), request->comm);
  }
  if (*flag == 0) return MPI_SUCCESS;
  const MPI_Errhandler handler = request->comm->error_handler();
  const int code = finish(*request, outcome, handle, status);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Test);

extern "C" int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const Call call("MPI_Testall");
  Selection selection;
  int code = selection.collect(count, requests);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = 0;
  if (selection.active() != 0) poll_once();
  for (std::size_t i = 0; i < selection.size(); ++i) {
    canele_status_t outcome{};
    if (selection[i] != nullptr && !is_done(*selection[i], &outcome)) return MPI_SUCCESS;
  }
  *flag = 1;
  Communicator* comm = selection.comm();
  const MPI_Errhandler handler = comm == nullptr ? MPI_ERRORS_RETURN : comm->error_handler();
  code = finish_all(selection, requests, statuses);
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Testall);

extern "C" int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const Call call("MPI_Testany");
  Selection selection;
  int code = selection.collect(count, requests);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = 1;
  *index = MPI_UNDEFINED;
  if (selection.active() == 0) {
    fill_empty_status(status);
    return MPI_SUCCESS;
  }
  const MPI_Errhandler handler = selection.comm()->error_handler();
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
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  if (request->collective) code = fail(MPI_ERR_REQUEST, "a collective cannot be cancelled; wait for it");
  // A send is never cancelled: MPI lets it complete as if nothing had been asked.
  if (request->receive && !request->to_nobody) code = from_engine(canele_cancel(&request->transfer.engine));
  return call.end(code, request->comm);
}
CANELE_MPI_NAME(Cancel);

extern "C" int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  const Call call("MPI_Test_cancelled");
  *flag = status->cancelled;
  return call.end(MPI_SUCCESS);
}
CANELE_MPI_NAME(Test_cancelled);

extern "C" int PMPI_Request_free(MPI_Request* handle) {
  const Call call("MPI_Request_free");
  Request* request = nullptr;
  int code = get_request(*handle, &request);
  if (code == MPI_SUCCESS && request == nullptr) code = fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (code != MPI_SUCCESS) return call.end(code);
  const MPI_Errhandler handler = request->comm->error_handler();
  code = abandon(*request);
  if (code == MPI_SUCCESS) *handle = MPI_REQUEST_NULL;
  return call.end_with(code, handler);
}
CANELE_MPI_NAME(Request_free);
