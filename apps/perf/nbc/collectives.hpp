// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: starts one of them, of the library for which this is compiled. The Link of ../progress waits for it.
//
// One thread. It is built with canele-perf on our native API, and with an MPI's compiler on that MPI (CANELE_PERF_MPI,
// by peers/nbc.py). It is inline, so that its call takes the time of the library's own call.
#pragma once

#include "../progress/link.hpp"

#ifdef CANELE_PERF_MPI
#include "collectives_mpi.hpp"
#else
#include "collectives_canele.hpp"
#endif
