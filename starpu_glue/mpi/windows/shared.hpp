// SPDX-License-Identifier: BSD-3-Clause
//
// Shared windows: parts that all ranks of the window access by loads and stores, too.
//
// Called by window.cpp and api_window.cpp, by one thread until the window is made, then by any thread. All ranks must
// be able to map memory of each other: ranks of one host. By default the first rank allocates one piece of memory for
// all, and the parts follow each other. With the hint alloc_shared_noncontig each rank allocates its own part.
// Functions return MPI codes.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// Agrees on the place of each part. All ranks call it, before they make their parts.
int agree_on_places(Window& window, const InfoPairs& hints);
/// Makes this rank's part.
int allocate_shared_part(Window& window, WindowCard& card);
/// Maps all parts. All ranks call it, after the exchange of the cards. MPI_ERR_RMA_SHARED on all ranks if one cannot.
int map_parts(Window& window);

/// Finds a part; of MPI_PROC_NULL: the first part with memory.
int find_shared_part(const Window& window, int rank, MPI_Aint* size, int* unit, void** base);

}  // namespace canele::mpi
