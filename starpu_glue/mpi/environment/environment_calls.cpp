// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pcontrol and MPI_Get_hw_resource_info, called by their entry points. Any thread.
#include <utility>

#include "calls/environment.hpp"
#include "starpu_glue/mpi/communicators/hardware.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi::calls {

/// Profiling tools replace MPI_Pcontrol. The library itself has no levels.
int pcontrol(int) { return MPI_SUCCESS; }

/// Each kind of hardware, and whether the process is restricted to one object of it.
int get_hw_resource_info(MPI_Info* hw_info) {
  const HardwarePlace place = own_hardware_place();
  InfoPairs pairs;
  for (int kind = 0; kind < hardware_kind_count; ++kind)
    pairs.emplace_back(hardware_kinds[kind], place.objects[kind] >= 0 ? "true" : "false");
  return new_info(std::move(pairs), hw_info);
}

}  // namespace canele::mpi::calls
