// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of a message: what the usual call does, in line, and nothing else.
//
// Who: api_point_to_point.cpp, api_completion.cpp. Threads: any.
// Surprise: nothing here says what is wrong. Whatever is not as usual (a handle that is not found, a rank that is not
//     there, a type with gaps, a profile) ends the short way before anything is done; the same call then goes the
//     careful way from its beginning, and that finds the words.
//
//   usual: MPI runs, no profile; a live communicator, one of its ranks (of a receive also any) and a tag (any); a dense
//          type; a free request that the thread keeps
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include "starpu_glue/mpi/communicator.hpp"
#include "starpu_glue/mpi/request.hpp"
#include "starpu_glue/mpi/state.hpp"
#include "starpu_glue/mpi/type.hpp"

namespace canele::mpi {

/// A message as most are: what its call names, step by step.
class Usual {
 public:
  /// False: nothing was done.
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
    mask_ = tag >= 0 ? CANELE_TAG_EXACT : CANELE_TAG_ANY;
    return tag >= MPI_ANY_TAG;
  }
  bool has_data(MPI_Datatype type, int count) {
    type_ = types_pool.find(type);
    count_ = count;
    return type_ != nullptr && type_->dense && count >= 0;
  }
  /// The last step: one of the thread's free requests, if it has one.
  Request* take_request(bool receive) {
    Request* request = free_requests.take_kept();
    if (request == nullptr) return nullptr;
    request->begin(*comm_, receive, 0);
    return request;
  }

  /// The engine's answer.
  int send(const void* memory, Request& request) const {
    return canele_isend(comm_->messages(), peer_, tag_, first_byte(memory), length(), &request.engine);
  }
  int receive(void* memory, Request& request) const {
    request.room = length();
    return canele_irecv(comm_->messages(), peer_, tag_, mask_, first_byte(memory), length(), &request.engine);
  }

 private:
  bool has_communicator(MPI_Comm comm) {
    comm_ = plain_world();
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
  std::uint64_t tag_ = 0, mask_ = 0;
  int peer_ = 0, count_ = 0;
};

/// The request of a handle, if nothing else is to be done for it than to wait and to free it; else nullptr.
inline Request* find_usual(MPI_Request handle) {
  Request* request = requests_pool.find(handle);
  return request != nullptr && request->duties == 0 ? request : nullptr;
}

inline bool may_wait_shortly() { return plain_world() != nullptr && !CallbackScope::here(); }

/// Tells `status` (may be MPI_STATUS_IGNORE) what has come of a message that did not fail.
inline void fill_usual_status(const Request& request, const canele_status_t& outcome, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  if (request.is_receive) {
    fill_status(request.comm(), outcome, status);
  } else {
    fill_empty_status(status);
  }
}

/// Frees the request of a handle, which is null from now on.
inline void free_usual(Request& request, MPI_Request* handle) {
  RequestPool::close(request);
  free_requests.give(request);
  *handle = MPI_REQUEST_NULL;
}

/// Waits for and frees, from the first on, requests that nothing else is to be done for. It stops at any other, and
/// where one has failed: null handles tell how far it has come. True if all are done.
[[gnu::always_inline]] inline bool wait_shortly(int count, MPI_Request* handles) {
  constexpr int few = 64;
  canele_request_t* engines[few];
  while (count > 0) {
    int found = 0;
    for (; found < few && found < count; ++found) {
      Request* request = find_usual(handles[found]);
      if (request == nullptr) break;
      engines[found] = &request->engine;
    }
    if (found == 0 || canele_wait_all(static_cast<std::size_t>(found), engines, nullptr) != CANELE_OK) return false;
    for (int i = 0; i < found; ++i) {
      Request& request = Request::of(*engines[i]);
      if (RequestPool::handle_of(request) != handles[i]) return false;  // it was there twice
      free_usual(request, &handles[i]);
    }
    handles += found;
    count -= found;
  }
  return count == 0;
}

}  // namespace canele::mpi
