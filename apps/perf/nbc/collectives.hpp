// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: starts one of them, of the library that this is compiled for; the Link of ../progress waits for it.
//
// Who: nbc; built with canele-perf on our native API, with an MPI's compiler on that MPI (CANELE_PERF_MPI, by
//     peers/nbc.py).
// Threads: one. Surprise: it is in line: the time of its call is that of the library's own.
#pragma once

#include "../progress/link.hpp"

#ifdef CANELE_PERF_MPI
#include "collectives_mpi.hpp"
#else
#include "collectives_canele.hpp"
#endif
