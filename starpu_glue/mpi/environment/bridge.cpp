// SPDX-License-Identifier: BSD-3-Clause
//
// From MPI objects to those of the native API. Called from any thread.
#include <canele_mpi.h>

#include <new>
#include <utility>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"

using namespace canele::mpi;

namespace {

struct Elements {
  Payload payload;
  Type* type = nullptr;
};
static_assert(sizeof(Elements) <= sizeof(canele_mpi_elements_t) && alignof(Elements) <= alignof(canele_mpi_elements_t));

}  // namespace

extern "C" int canele_mpi_engine(canele_engine_t** engine) {
  const Call call("canele_mpi_engine");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"engine", engine}}); code != MPI_SUCCESS) return call.end(code);
  *engine = canele::mpi::engine();
  return call.end(MPI_SUCCESS);
}

extern "C" int canele_mpi_session(MPI_Comm comm, canele_session_t** session) {
  const Call call("canele_mpi_session");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"session", session}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) code = found->native(session);
  return call.end(code, found);
}

extern "C" int canele_mpi_job_rank(MPI_Comm comm, int rank, int* job_rank) {
  const Call call("canele_mpi_job_rank");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"job_rank", job_rank}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS && !found->has_rank(rank))
    code = fail(MPI_ERR_RANK, "rank %d is not in the communicator of %d ranks", rank, found->size());
  if (code == MPI_SUCCESS) *job_rank = found->world_rank(rank);
  return call.end(code, found);
}

extern "C" int canele_mpi_comm_rank(MPI_Comm comm, int job_rank, int* rank) {
  const Call call("canele_mpi_comm_rank");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"rank", rank}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  int code = get_communicator(comm, &found);
  const int ranks = code == MPI_SUCCESS ? canele_size(canele::mpi::engine()) : 0;
  if (code == MPI_SUCCESS && (job_rank < 0 || job_rank >= ranks))
    code = fail(MPI_ERR_RANK, "rank %d is not in the job of %d ranks", job_rank, ranks);
  if (code == MPI_SUCCESS) *rank = found->ranks()->position(job_rank);
  return call.end(code, found);
}

extern "C" int canele_mpi_data_get(canele_mpi_elements_t* elements, const void* buffer, int count, MPI_Datatype type,
                                   canele_data_t* data) {
  const Call call("canele_mpi_data_get");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"elements", elements}, {"data", data}}); code != MPI_SUCCESS) return call.end(code);
  Type* const found = find_type(type);
  if (found == nullptr) return call.end(fail(MPI_ERR_TYPE, "0x%zx is not a datatype, or was freed", handle_bits(type)));
  if (count < 0) return call.end(fail(MPI_ERR_COUNT, "count is %d; expected: at least 0", count));
  if (buffer == nullptr && found->size * static_cast<std::size_t>(count) != 0 && found->true_lower == 0)
    return call.end(fail(MPI_ERR_BUFFER, "buffer is NULL for %d elements", count));
  add_reference(*found);
  auto* const made = new (elements) Elements{Payload(buffer, static_cast<std::size_t>(count), *found), found};
  *data = made->payload.describe();
  return call.end(MPI_SUCCESS);
}

extern "C" int canele_mpi_data_release(canele_mpi_elements_t* elements) {
  const Call call("canele_mpi_data_release");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"elements", elements}}); code != MPI_SUCCESS) return call.end(code);
  auto* const made = reinterpret_cast<Elements*>(elements);
  if (made->type == nullptr) return call.end(fail(MPI_ERR_ARG, "elements hold no datatype, or were released"));
  drop_reference(*std::exchange(made->type, nullptr));
  return call.end(MPI_SUCCESS);
}
