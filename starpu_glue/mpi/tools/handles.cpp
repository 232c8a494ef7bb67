// SPDX-License-Identifier: BSD-3-Clause
//
// What a tool holds. The lists never end: a tool may use them while the process ends.
#include "starpu_glue/mpi/tools/handles.hpp"

namespace canele::mpi::tools {

Held<ControlHandle, MPI_T_cvar_handle>& control_handles() {
  static auto& all = *new Held<ControlHandle, MPI_T_cvar_handle>;
  return all;
}

Held<Session, MPI_T_pvar_session>& sessions() {
  static auto& all = *new Held<Session, MPI_T_pvar_session>;
  return all;
}

void drop_all_handles() {
  control_handles().clear();
  sessions().clear();
}

}  // namespace canele::mpi::tools
