// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Comm_ functions, called by their entry points. Any thread.
#include <climits>
#include <cstring>

#include "calls/attributes.hpp"
#include "calls/communicators.hpp"
#include "calls/errors.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {
namespace {

/// Returns the value of an attribute that all communicators have; nullptr if it is none of them.
const int* predefined_attribute(int keyval) {
  static constexpr int tag_upper_bound = INT_MAX, io = MPI_ANY_SOURCE, host = MPI_PROC_NULL, wtime_is_global = 0,
                       last_used_code = MPI_ERR_LASTCODE;
  switch (keyval) {
    case MPI_TAG_UB:
      return &tag_upper_bound;
    case MPI_IO:
      return &io;
    case MPI_HOST:
      return &host;
    case MPI_WTIME_IS_GLOBAL:
      return &wtime_is_global;
    case MPI_LASTUSEDCODE:
      return &last_used_code;
    default:
      return nullptr;
  }
}

}  // namespace

namespace calls {

int comm_rank(Communicator& comm, int* rank) {
  *rank = comm.rank();
  return MPI_SUCCESS;
}

int comm_size(Communicator& comm, int* size) {
  *size = comm.size();
  return MPI_SUCCESS;
}

int comm_dup(Communicator& comm, MPI_Comm* newcomm) { return duplicate(comm, newcomm); }

int comm_split(Communicator& comm, int color, int key, MPI_Comm* newcomm) {
  if (color < 0 && color != MPI_UNDEFINED)
    return fail(MPI_ERR_ARG, "color is %d; expected: at least 0, or MPI_UNDEFINED", color);
  return split(comm, color, key, newcomm);
}

int comm_split_type(Communicator& comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  if (split_type != MPI_COMM_TYPE_SHARED && split_type != MPI_UNDEFINED)
    return fail(MPI_ERR_ARG, "the type is %d; expected: MPI_COMM_TYPE_SHARED or MPI_UNDEFINED", split_type);
  InfoPairs hints;  // none is known
  const int code = hint_pairs(info, &hints);
  return code == MPI_SUCCESS ? split_by_memory(comm, split_type == MPI_COMM_TYPE_SHARED, key, newcomm) : code;
}

int comm_create(Communicator& comm, const RanksPointer& group, MPI_Comm* newcomm) {
  return create_together(comm, *group, newcomm);
}

int comm_create_group(Communicator& comm, const RanksPointer& group, int tag, MPI_Comm* newcomm) {
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0", tag);
  return create_from_group(comm, group, tag, newcomm);
}

int comm_free(MPI_Comm* comm) { return free_communicator(comm); }

int comm_compare(Communicator& comm1, Communicator& comm2, int* result) {
  *result = &comm1 == &comm2 ? MPI_IDENT : compare(*comm1.ranks(), *comm2.ranks());
  return MPI_SUCCESS;
}

int comm_group(Communicator& comm, MPI_Group* group) { return new_group(comm.ranks(), group); }

int comm_set_name(Communicator& comm, const char* comm_name) {
  comm.set_name(comm_name);
  return MPI_SUCCESS;
}

int comm_get_name(Communicator& comm, char* comm_name, int* resultlen) {
  comm.name(comm_name, resultlen);
  return MPI_SUCCESS;
}

int comm_get_attr(Communicator&, int comm_keyval, void* attribute_val, int* flag) {
  const int* attribute = predefined_attribute(comm_keyval);
  *flag = attribute != nullptr ? 1 : 0;
  if (attribute != nullptr)
    std::memcpy(attribute_val, &attribute, sizeof attribute);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}

int comm_set_errhandler(Communicator& comm, MPI_Errhandler errhandler) {
  if (errhandler != MPI_ERRORS_ARE_FATAL && errhandler != MPI_ERRORS_RETURN) {
    return fail(MPI_ERR_ARG, "0x%zx is not an error handler; expected: MPI_ERRORS_ARE_FATAL or MPI_ERRORS_RETURN",
                handle_bits(errhandler));
  }
  comm.set_error_handler(errhandler);
  return MPI_SUCCESS;
}

int comm_get_errhandler(Communicator& comm, MPI_Errhandler* errhandler) {
  *errhandler = comm.error_handler();
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
