// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Comm_ and MPI_Intercomm_ functions, called by their entry points. Any thread.
#include <algorithm>
#include <string>

#include "calls/communicators.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/communicators/intercommunicator.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {
namespace calls {

int comm_rank(Communicator& comm, int* rank) {
  *rank = comm.rank();
  return MPI_SUCCESS;
}

int comm_size(Communicator& comm, int* size) {
  *size = comm.own_ranks()->size();
  return MPI_SUCCESS;
}

int comm_remote_size(Communicator& comm, int* size) {
  *size = comm.size();
  return MPI_SUCCESS;
}

int comm_dup(Communicator& comm, MPI_Comm* newcomm) { return duplicate(comm, comm.hints(), newcomm); }

int comm_dup_with_info(Communicator& comm, MPI_Info info, MPI_Comm* newcomm) {
  InfoPairs hints;
  const int code = hint_pairs(info, &hints);
  return code == MPI_SUCCESS ? duplicate(comm, hints, newcomm) : code;
}

int comm_set_info(Communicator& comm, MPI_Info info) {
  InfoPairs hints;
  const int code = info_pairs(info, &hints);
  if (code == MPI_SUCCESS) comm.take_hints(hints);
  return code;
}

int comm_get_info(Communicator& comm, MPI_Info* info_used) { return new_object_info(comm.hints(), info_used); }

int comm_test_inter(Communicator& comm, int* flag) {
  *flag = comm.inter() == nullptr ? 0 : 1;
  return MPI_SUCCESS;
}

int comm_split(Communicator& comm, int color, int key, MPI_Comm* newcomm) {
  if (color < 0 && color != MPI_UNDEFINED)
    return fail(MPI_ERR_ARG, "color is %d; expected: at least 0, or MPI_UNDEFINED", color);
  return split(comm, color, key, newcomm);
}

int comm_split_type(Communicator& comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  if (split_type != MPI_UNDEFINED && (split_type < MPI_COMM_TYPE_SHARED || split_type > MPI_COMM_TYPE_RESOURCE_GUIDED))
    return fail(MPI_ERR_ARG, "the type is %d; expected: MPI_COMM_TYPE_SHARED or a sibling, or MPI_UNDEFINED",
                split_type);
  InfoPairs hints;
  std::string resource;
  int code = hint_pairs(info, &hints);
  if (code == MPI_SUCCESS) code = split_by_type(comm, split_type, key, hints, &resource, newcomm);
  if (code == MPI_SUCCESS && !resource.empty() && info != MPI_INFO_NULL)
    code = set_info(info, "mpi_hw_resource_type", resource.c_str());
  return code;
}

int comm_create(Communicator& comm, const RanksPointer& group, MPI_Comm* newcomm) {
  return create_together(comm, *group, newcomm);
}

int comm_create_group(Communicator& comm, const RanksPointer& group, int tag, MPI_Comm* newcomm) {
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0", tag);
  return create_from_group(comm, group, tag, newcomm);
}

int comm_free(MPI_Comm* comm) { return free_communicator(comm); }

int comm_disconnect(MPI_Comm* comm) { return disconnect_communicator(comm); }

/// No function here creates processes, so no process has a parent.
int comm_get_parent(MPI_Comm* parent) {
  *parent = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int comm_compare(Communicator& comm1, Communicator& comm2, int* result) {
  if (&comm1 == &comm2) {
    *result = MPI_IDENT;
  } else if ((comm1.inter() == nullptr) != (comm2.inter() == nullptr)) {
    *result = MPI_UNEQUAL;
  } else {  // the constants are in the order of likeness
    *result = std::max(compare(*comm1.own_ranks(), *comm2.own_ranks()), compare(*comm1.ranks(), *comm2.ranks()));
  }
  return MPI_SUCCESS;
}

int comm_group(Communicator& comm, MPI_Group* group) { return new_group(comm.own_ranks(), group); }

int comm_remote_group(Communicator& comm, MPI_Group* group) { return new_group(comm.ranks(), group); }

int intercomm_create(Communicator& local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newintercomm) {
  return create_inter(local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm);
}

int intercomm_merge(Communicator& intercomm, int high, MPI_Comm* newintracomm) {
  return merge(intercomm, high != 0, newintracomm);
}

int comm_set_name(Communicator& comm, const char* comm_name) {
  comm.set_name(comm_name);
  return MPI_SUCCESS;
}

int comm_get_name(Communicator& comm, char* comm_name, int* resultlen) {
  comm.name(comm_name, resultlen);
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
