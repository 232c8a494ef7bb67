// SPDX-License-Identifier: BSD-3-Clause
//
// The group of a persistent collective.
#include "starpu_glue/mpi/collectives/plan.hpp"

namespace canele::mpi {

PlannedWork::~PlannedWork() { comm_.close_group(group_); }

void revoke_group(Communicator& comm, const std::string& label) {
  canele_group_t* group = nullptr;
  if (label.empty() || comm.open_group(Members::all, label, &group) != MPI_SUCCESS) return;
  canele_group_revoke(group);  // it stays until the communicator ends, because its notices need it
}

int PlannedWork::open_group(const std::string& label) { return comm_.open_group(members_, label, &group_); }

}  // namespace canele::mpi
