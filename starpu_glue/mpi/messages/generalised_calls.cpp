// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Grequest_start and MPI_Grequest_complete: requests that the program completes. Any thread.
//
// The engine's request is begun without an operation, so a thread that waits for it sleeps as for a message.
// MPI_Grequest_complete completes it. Callbacks of the program run without a lock.
#include "calls/completion.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

class Generalised final : public Work {
 public:
  Generalised(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free, MPI_Grequest_cancel_function* stop,
              void* state)
      : query_(query), free_(free), cancel_(stop), state_(state) {}
  ~Generalised() override {
    if (is_started_ && !has_ended_) free_(state_);
  }
  void begin() { is_started_ = true; }

  int describe(const canele_status_t&, MPI_Status* status) override {
    fill_empty_status(status);
    return query_(state_, status);
  }
  int end() override {
    has_ended_ = true;
    return free_(state_);
  }
  int cancel(bool is_done) override { return cancel_(state_, is_done ? 1 : 0); }
  int complete(Request& request) override {
    if (is_complete_.exchange(true)) return fail(MPI_ERR_REQUEST, "the request was completed before");
    release(request);
    return MPI_SUCCESS;
  }

 private:
  MPI_Grequest_query_function* query_;
  MPI_Grequest_free_function* free_;
  MPI_Grequest_cancel_function* cancel_;
  void* state_;
  std::atomic<bool> is_complete_{false};
  bool is_started_ = false, has_ended_ = false;
};

}  // namespace

namespace calls {

int grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request) {
  auto work = std::make_unique<Generalised>(query_fn, free_fn, cancel_fn, extra_state);
  Generalised& generalised = *work;
  Request* made = nullptr;
  Communicator* any = nullptr;
  int code = get_any_communicator(&any);
  if (code == MPI_SUCCESS) code = new_special(*any, std::move(work), &made);
  if (code != MPI_SUCCESS) return code;
  code = hold(*made);
  if (code == MPI_SUCCESS) generalised.begin();
  return publish_request(*made, code, request);
}

int grequest_complete(MPI_Request request) {
  Request* found = nullptr;
  const int code = get_request(request, &found);
  if (code != MPI_SUCCESS) return code;
  if (found == nullptr || !found->has(Request::special)) {
    return fail(MPI_ERR_REQUEST, "the request was not made by MPI_Grequest_start");
  }
  return found->work->complete(*found);
}

}  // namespace calls
}  // namespace canele::mpi
