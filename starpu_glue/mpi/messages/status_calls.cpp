// SPDX-License-Identifier: BSD-3-Clause
//
// Statuses: of requests that are kept (MPI_Request_get_status), and their fields. Any thread.
#include <cstring>

#include "calls/completion.hpp"
#include "calls/handles.hpp"
#include "calls/point_to_point.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

/// Fills the status of a request that is done, and keeps the request. The results of a collective are delivered once.
/// Returns how it has ended.
int describe_kept(Request& request, MPI_Status* status) {
  const int code = describe(request, outcome_of(request), status);
  if (request.has(Request::collective)) request.staging.settle();
  return code;
}

/// Finds an active request. Makes progress once if it is not done.
int look(MPI_Request handle, bool* polled, Request** found, bool* done) {
  if (const int code = get_active(handle, found); code != MPI_SUCCESS) return code;
  *done = *found == nullptr || is_done(**found);
  if (*done || *polled) return MPI_SUCCESS;
  *polled = true;
  canele_progress(engine());
  *done = is_done(**found);
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int get_count(const MPI_Status* status, Type& datatype, MPI_Count* count) {
  const auto size = static_cast<MPI_Count>(datatype.size);
  if (size == 0) {
    *count = status->size == 0 ? 0 : MPI_UNDEFINED;
  } else {
    *count = status->size % size == 0 ? status->size / size : MPI_UNDEFINED;
  }
  return MPI_SUCCESS;
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Request* found = nullptr;
  bool polled = false, done = false;
  if (const int code = look(request, &polled, &found, &done); code != MPI_SUCCESS) return code;
  *flag = done ? 1 : 0;
  if (found == nullptr) {
    fill_empty_status(status);
  } else if (done) {
    describe_kept(*found, status);
  }
  return MPI_SUCCESS;
}

int request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                           MPI_Status array_of_statuses[]) {
  bool polled = false, all = true;
  for (int i = 0; i < count; ++i) {
    Request* found = nullptr;
    bool done = false;
    if (const int code = look(array_of_requests[i], &polled, &found, &done); code != MPI_SUCCESS) return code;
    all = all && done;
  }
  *flag = all ? 1 : 0;
  for (int i = 0; all && i < count; ++i) {
    MPI_Status* const status = status_at(array_of_statuses, static_cast<std::size_t>(i));
    Request* found = nullptr;
    get_active(array_of_requests[i], &found);
    if (found == nullptr) fill_empty_status(status);
    set_error(status, found == nullptr ? MPI_SUCCESS : describe_kept(*found, status));
  }
  return MPI_SUCCESS;
}

int request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status) {
  bool polled = false, active = false;
  for (int i = 0; i < count; ++i) {
    Request* found = nullptr;
    bool done = false;
    if (const int code = look(array_of_requests[i], &polled, &found, &done); code != MPI_SUCCESS) return code;
    if (found == nullptr) continue;
    active = true;
    if (!done) continue;
    *indx = i;
    *flag = 1;
    describe_kept(*found, status);
    return MPI_SUCCESS;
  }
  *indx = MPI_UNDEFINED;
  *flag = active ? 0 : 1;
  if (!active) fill_empty_status(status);
  return MPI_SUCCESS;
}

int request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                            MPI_Status array_of_statuses[]) {
  bool polled = false, active = false;
  int ended = 0;
  for (int i = 0; i < incount; ++i) {
    Request* found = nullptr;
    bool done = false;
    if (const int code = look(array_of_requests[i], &polled, &found, &done); code != MPI_SUCCESS) return code;
    if (found == nullptr) continue;
    active = true;
    if (!done) continue;
    MPI_Status* const status = status_at(array_of_statuses, static_cast<std::size_t>(ended));
    set_error(status, describe_kept(*found, status));
    array_of_indices[ended++] = i;
  }
  *outcount = active ? ended : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int status_get_source(const MPI_Status* status, int* source) {
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}

int status_get_tag(const MPI_Status* status, int* tag) {
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}

int status_get_error(const MPI_Status* status, int* error) {
  *error = status->MPI_ERROR;
  return MPI_SUCCESS;
}

int status_set_source(MPI_Status* status, int source) {
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}

int status_set_tag(MPI_Status* status, int tag) {
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}

int status_set_error(MPI_Status* status, int error) {
  status->MPI_ERROR = error;
  return MPI_SUCCESS;
}

int status_set_cancelled(MPI_Status* status, int flag) {
  status->cancelled = flag != 0 ? 1 : 0;
  return MPI_SUCCESS;
}

// A status has the same bytes in C and in both forms of Fortran.
static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint));
static_assert(sizeof(MPI_Status) == sizeof(MPI_F08_status));

int status_c2f(const MPI_Status* c_status, MPI_Fint* f_status) {
  std::memcpy(f_status, c_status, sizeof *c_status);
  return MPI_SUCCESS;
}

int status_f2c(const MPI_Fint* f_status, MPI_Status* c_status) {
  std::memcpy(c_status, f_status, sizeof *c_status);
  return MPI_SUCCESS;
}

int status_c2f08(const MPI_Status* c_status, MPI_F08_status* f08_status) {
  std::memcpy(f08_status, c_status, sizeof *c_status);
  return MPI_SUCCESS;
}

int status_f082c(const MPI_F08_status* f08_status, MPI_Status* c_status) {
  std::memcpy(c_status, f08_status, sizeof *c_status);
  return MPI_SUCCESS;
}

int status_f2f08(const MPI_Fint* f_status, MPI_F08_status* f08_status) {
  std::memcpy(f08_status, f_status, sizeof *f08_status);
  return MPI_SUCCESS;
}

int status_f082f(const MPI_F08_status* f08_status, MPI_Fint* f_status) {
  std::memcpy(f_status, f08_status, sizeof *f08_status);
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
