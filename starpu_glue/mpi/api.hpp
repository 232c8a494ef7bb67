// SPDX-License-Identifier: BSD-3-Clause
//
// What the api_*.cpp files share: the two names of every MPI function.
//
// Who: api_*.cpp only. Threads: any.
// Surprise: PMPI_X is the function, MPI_X a weak second name of it: a profiling tool defines its own MPI_X and calls
//     ours.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/error.hpp"

#if defined(__has_attribute) && __has_attribute(copy)
#define CANELE_MPI_COPY(target) , copy(target)  // gcc wants the second name to promise what the first one does
#else
#define CANELE_MPI_COPY(target)
#endif

/// After the definition of PMPI_<name>: gives it its second name.
#define CANELE_MPI_NAME(name)                           \
  extern "C" __attribute__((weak, alias("PMPI_" #name), \
                            visibility("default") CANELE_MPI_COPY(PMPI_##name))) decltype(PMPI_##name) MPI_##name
