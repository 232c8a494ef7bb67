// SPDX-License-Identifier: BSD-3-Clause
//
// Non-blocking requests of the MPI subset.
//
// Who: api_point_to_point.cpp, api_collective.cpp, api_completion.cpp. Threads: any; MPI allows one thread at a time
//     per request.
// Surprise: the object is the slot of its handle and is used again without being freed: a request costs no allocation.
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include "starpu_glue/mpi/communicator.hpp"
#include "starpu_glue/mpi/profile.hpp"
#include "starpu_glue/mpi/staging.hpp"
#include "starpu_glue/mpi/transfer.hpp"

namespace canele::mpi {

struct Request {
  Transfer transfer;             ///< of a collective: the engine's request only
  Staging staging;               ///< of a collective
  Type* type = nullptr;          ///< counted; none for a collective
  Communicator* comm = nullptr;  ///< counted
  MPI_Request handle = MPI_REQUEST_NULL;
  profile::Started started;
  bool receive = false;
  bool to_nobody = false;  ///< MPI_PROC_NULL: complete from the start
  bool collective = false;
};

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
int get_destination(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);
int get_source(MPI_Comm comm, int rank, int tag, Endpoint* endpoint);

/// Post. MPI codes.
int start_send(const Endpoint& to, const Buffer& buffer, bool synchronous, MPI_Request* handle);
int start_receive(const Endpoint& from, const Buffer& buffer, MPI_Request* handle);

/// A request for a collective that the caller starts with `transfer.engine` and `staging`; then settle_collective.
int new_collective(Communicator& comm, Request** made);
/// `code` tells whether it was started: hands its handle out, or frees it. Returns `code`.
int settle_collective(Request& request, int code, MPI_Request* handle);

/// The request of a live handle; MPI_REQUEST_NULL gives nullptr. MPI code.
int get_request(MPI_Request handle, Request** found);

/// True once the request is finalized; does not make progress.
bool is_done(Request& request, canele_status_t* status);

/// Turns the outcome of a finalized request into `status` (may be MPI_STATUS_IGNORE), frees it and sets *handle to
/// null. The MPI code of the outcome.
int finish(Request& request, const canele_status_t& outcome, MPI_Request* handle, MPI_Status* status);

/// What a finalized collective has come to: its results get to their places, or why it failed. MPI code.
int complete_collective(const canele_status_t& outcome, const Staging& staging);

/// Frees the request as soon as it is finalized. Not for collectives: MPI_ERR_REQUEST.
int abandon(Request& request);

void fill_status(const Communicator& comm, const canele_status_t& outcome, MPI_Status* status);
void fill_empty_status(MPI_Status* status);
void fill_nobody_status(MPI_Status* status);

}  // namespace canele::mpi
