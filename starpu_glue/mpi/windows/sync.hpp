// SPDX-License-Identifier: BSD-3-Clause
//
// Synchronisation of windows: when operations are allowed, and when they are over.
//
// Called by api_window.cpp, and by window_access.cpp before the first operation on a target in an epoch. Any thread.
// Functions return MPI codes. What waits for other ranks makes progress meanwhile.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {

/// Checks the bits of an assertion.
int check_asserts(int asserts, int allowed);
/// Checks that an epoch of another kind may begin. A fence epoch without operations gives way. Under the mutex.
int check_new_epoch(const Window& window);

/// Checks that this rank may access the target now, and opens its keys. Takes the lock that MPI_Win_lock_all has not
/// taken yet. The target is then ready until the end of the epoch.
int make_ready(Window& window, int rank);

/// Most operations of this rank that are pending on one target: the memory that they take has a limit.
inline constexpr std::uint64_t kMostPending = 4096;
/// Waits for the operations on a target if so many are pending.
int limit_pending(Window& window, int rank);

/// Blocks until all operations of this rank on the target, or on all targets of the epoch, are over.
int flush_window(Window& window, int rank);
int flush_all_of_window(Window& window);
/// The same for MPI_Win_flush and its like, which need a lock of the target.
int flush_locked(Window& window, int rank);
int flush_all_locked(Window& window);

/// The flushes of the calling thread.
extern constinit thread_local unsigned flushes_here;
/// Makes progress at some of a thread's flushes. Operations on memory that this rank has mapped make none, and a loop
/// of them must not keep this rank's own part from the others.
inline void progress_at_times(const Window& window) {
  constexpr unsigned kEach = 32;
  if (++flushes_here % kEach == 0) canele_progress(window.engine);
}

/// Ends all operations, and then the epoch.
int end_epoch(Window& window);
/// MPI_ERR_RMA_SYNC while the window is locked, or between post and wait or start and complete.
int check_unused(Window& window);

int fence_window(Window& window, int asserts);

int lock_window(Window& window, int type, int rank, int asserts);
int unlock_window(Window& window, int rank);
int lock_all_of_window(Window& window, int asserts);
int unlock_all_of_window(Window& window);

/// Makes the program's loads and stores, and those of other ranks, visible to each other; makes progress.
int sync_window(const Window& window);

}  // namespace canele::mpi
