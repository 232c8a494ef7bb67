// SPDX-License-Identifier: BSD-3-Clause
//
// Gives every MPI function its two names. Shared by the api_*.cpp files.
//
// PMPI_X is the function and MPI_X is a weak alias of it. A profiling tool defines its own MPI_X and calls PMPI_X.
// Usable from any thread.
#pragma once

#include <mpi.h>

#if defined(__has_attribute) && __has_attribute(copy)
#define CANELE_MPI_COPY(target) , copy(target)  // gcc expects the alias to have the attributes of its target
#else
#define CANELE_MPI_COPY(target)
#endif

/// Defines the alias MPI_<name>. Used after the definition of PMPI_<name>.
#define CANELE_MPI_NAME(name)                           \
  extern "C" __attribute__((weak, alias("PMPI_" #name), \
                            visibility("default") CANELE_MPI_COPY(PMPI_##name))) decltype(PMPI_##name) MPI_##name
