// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of a message: the common case, inline, and nothing else. Usable from any thread.
//
// Nothing here reports errors. Any other case ends the fast path before it has had any effect. Examples are an
// unknown handle, a wrong rank, a type with gaps, or a profile. The call then takes the slow path from its
// beginning, which reports the error.
//
// The common case: MPI runs and no profile is wanted. The communicator is live, and it has the rank (a receive may also
// name any). The tag is valid (a receive may also name any). The type is dense, and the thread keeps a free request.
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// A message on the fast path: collects what its call names, step by step.
class FastMessage {
 public:
  /// Returns false, with no effect, if the destination does not suit the fast path.
  bool has_destination(MPI_Comm comm, int rank, int tag) {
    if (!has_communicator(comm) || !comm_->has_rank(rank) || tag < 0) return false;
    peer_ = comm_->world_rank(rank);
    tag_ = static_cast<std::uint64_t>(tag);
    return true;
  }
  bool has_source(MPI_Comm comm, int rank, int tag) {
    if (!has_communicator(comm)) return false;
    if (comm_->has_rank(rank)) [[likely]] {
      peer_ = comm_->world_rank(rank);
    } else if (rank == MPI_ANY_SOURCE) {
      peer_ = CANELE_ANY_SOURCE;
    } else {
      return false;
    }
    tag_ = static_cast<std::uint64_t>(tag);
    if (tag >= 0) [[likely]]
      return true;
    return tag == MPI_ANY_TAG;
  }
  bool has_data(MPI_Datatype type, int count) {
    type_ = types_pool.find(type);
    count_ = count;
    return type_ != nullptr && type_->dense && count >= 0;
  }
  /// A count of more than 31 bits takes the slow path.
  bool has_data(MPI_Datatype type, MPI_Count count) {
    return static_cast<int>(count) == count && has_data(type, static_cast<int>(count));
  }
  /// Takes one of the thread's free requests; nullptr if it has none. The last step.
  Request* take_request(bool receive) {
    Request* request = free_requests.take_cached();
    if (request == nullptr) return nullptr;
    request->begin(*comm_, receive, 0);
    return request;
  }

  /// Posts the message. Returns the result of the engine's call.
  int send(const void* memory, Request& request) const {
    return canele_isend(comm_->messages(), peer_, tag_, first_byte(memory), length(), &request.engine);
  }
  int receive(void* memory, Request& request) const {
    request.room = length();
    const std::uint64_t mask = static_cast<std::int64_t>(tag_) >= 0 ? CANELE_TAG_EXACT : CANELE_TAG_ANY;
    return canele_irecv(comm_->messages(), peer_, tag_, mask, first_byte(memory), length(), &request.engine);
  }

 private:
  bool has_communicator(MPI_Comm comm) {
    comm_ = fast_world();
    if (comm_ == nullptr || comm == MPI_COMM_WORLD) return comm_ != nullptr;
    comm_ = find_communicator(comm);
    return comm_ != nullptr;
  }
  char* first_byte(const void* memory) const {
    return static_cast<char*>(const_cast<void*>(memory)) + type_->single.first;
  }

  std::size_t length() const { return type_->size * static_cast<std::size_t>(count_); }

  Communicator* comm_ = nullptr;
  const Type* type_ = nullptr;
  std::uint64_t tag_ = 0;  // MPI_ANY_TAG: negative
  int peer_ = 0, count_ = 0;
};

/// Returns the request of a handle if it only has to be waited for and freed (no flags); else nullptr.
inline Request* find_fast(MPI_Request handle) {
  Request* request = requests_pool.find(handle);
  return request != nullptr && request->flags == 0 ? request : nullptr;
}

inline bool may_wait_fast() { return fast_world() != nullptr && !CallbackScope::here(); }

/// Fills `status` (may be MPI_STATUS_IGNORE) from the outcome of a message that did not fail.
inline void fill_fast_status(const Request& request, const canele_status_t& outcome, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  if (request.is_receive) {
    fill_status(request.comm(), outcome, status);
  } else {
    fill_empty_status(status);
  }
}

/// Frees the request of a handle and sets the handle to null.
inline void free_fast(Request& request, MPI_Request* handle) {
  RequestPool::close(request);
  free_requests.give(request);
  *handle = MPI_REQUEST_NULL;
}

/// Waits for requests without flags, from the first on, and frees them. Stops at any other request, and where one has
/// failed. The null handles then show how far it has come. Returns true if all are done.
[[gnu::always_inline]] inline bool wait_fast(int count, MPI_Request* handles) {
  constexpr int few = 64;
  canele_request_t* engines[few];
  while (count > 0) {
    int found = 0;
    for (; found < few && found < count; ++found) {
      Request* request = find_fast(handles[found]);
      if (request == nullptr) break;
      engines[found] = &request->engine;
    }
    if (found == 0 || canele_wait_all(static_cast<std::size_t>(found), engines, nullptr) != CANELE_OK) return false;
    for (int i = 0; i < found; ++i) {
      Request& request = Request::of(*engines[i]);
      if (RequestPool::handle_of(request) != handles[i]) return false;  // the array contained the handle twice
      free_fast(request, &handles[i]);
    }
    handles += found;
    count -= found;
  }
  return count == 0;
}

}  // namespace canele::mpi
