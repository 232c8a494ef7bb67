// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pcontrol and MPI_Get_hw_resource_info, called by their entry points. Any thread.
#include "calls/environment.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi::calls {

/// Profiling tools replace MPI_Pcontrol. The library itself has no levels.
int pcontrol(int) { return MPI_SUCCESS; }

/// The library does not bind the process to a resource, and so knows of none.
int get_hw_resource_info(MPI_Info* hw_info) { return new_info({}, hw_info); }

}  // namespace canele::mpi::calls
