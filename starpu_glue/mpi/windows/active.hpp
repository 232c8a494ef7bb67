// SPDX-License-Identifier: BSD-3-Clause
//
// Post, start, complete and wait: synchronisation of groups of origins and targets.
//
// Called by api_window_sync.cpp. Any thread, but one at a time for each end, as MPI says. They return MPI codes.
//
//     target   MPI_Win_post ──────────────┐                  MPI_Win_wait
//                          notification   │                    ▲ notification
//     origin           MPI_Win_start ◀────┘ operations ─▶ MPI_Win_complete
//
// Each rank has one slot for the notifications of posts, and one for those of completes. A thread that waits sleeps in
// the queue of its slot, and makes progress.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

int post_window(Window& window, const Ranks& origins, int asserts);
int start_window(Window& window, const Ranks& targets, int asserts);
int complete_window(Window& window);
int wait_window(Window& window);
/// Sets *flag if MPI_Win_wait would return now; it then has the effect of that call.
int test_window(Window& window, int* flag);

}  // namespace canele::mpi
