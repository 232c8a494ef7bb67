// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Comm_idup and MPI_Comm_idup_with_info, called by their entry points. Any thread.
//
// The duplicate is ready when the call returns. So is the request, which is that of a message to MPI_PROC_NULL.
#include "calls/communicators.hpp"
#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

int duplicate_with_request(Communicator& comm, const InfoPairs& hints, MPI_Comm* newcomm, MPI_Request* request) {
  MPI_Request started = MPI_REQUEST_NULL;
  int code = start_ended(comm, &started);
  if (code != MPI_SUCCESS) return code;
  code = duplicate_at_once(comm, hints, newcomm);
  if (code == MPI_SUCCESS) {
    *request = started;
  } else {
    free_request(*requests_pool.find(started));
  }
  return code;
}

}  // namespace

namespace calls {

int comm_idup(Communicator& comm, MPI_Comm* newcomm, MPI_Request* request) {
  return duplicate_with_request(comm, comm.hints(), newcomm, request);
}

int comm_idup_with_info(Communicator& comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  InfoPairs hints;
  const int code = hint_pairs(info, &hints);
  return code == MPI_SUCCESS ? duplicate_with_request(comm, hints, newcomm, request) : code;
}

}  // namespace calls
}  // namespace canele::mpi
