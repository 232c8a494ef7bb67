// SPDX-License-Identifier: BSD-3-Clause
//
// The group of a persistent collective.
#include "starpu_glue/mpi/collectives/plan.hpp"

namespace canele::mpi {

PlannedWork::~PlannedWork() { comm_.close_group(group_); }

int PlannedWork::open_group(const std::string& label) { return comm_.open_group(members_, label, &group_); }

}  // namespace canele::mpi
