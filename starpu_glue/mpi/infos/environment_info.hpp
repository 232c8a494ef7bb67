// SPDX-License-Identifier: BSD-3-Clause
//
// What MPI_INFO_ENV says: how the program was started. Any thread, at any time.
#pragma once

#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {

/// Returns the pairs for the given arguments of a program. There may be none.
InfoPairs environment_pairs(int argc, const char* const* argv);
/// Returns the pairs for the arguments of this process. While MPI runs, there are some more.
InfoPairs own_environment_pairs();

}  // namespace canele::mpi
