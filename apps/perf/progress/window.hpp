// SPDX-License-Identifier: BSD-3-Clause
//
// Window: memory of rank 1 that rank 0 accesses, so that one source measures our one-sided operations and MPI's.
//
// Chosen at compile time, as Link is. All ranks make and end a window together. Threads: the main thread of each rank.
#pragma once

#ifdef CANELE_PERF_MPI
#include "window_mpi.hpp"
#else
#include "window_canele.hpp"
#endif
