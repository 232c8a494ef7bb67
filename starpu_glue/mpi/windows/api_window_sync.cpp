// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Win_fence to MPI_Win_sync: synchronisation of windows. Called from any thread.
#include "starpu_glue/mpi/windows/active.hpp"
#include "starpu_glue/mpi/windows/api_window.hpp"
#include "starpu_glue/mpi/windows/fast.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {
namespace {

/// Flushes a rank if there is nothing to wait for. Else returns false, with no effect.
bool flush_fast(int rank, MPI_Win window) {
  FastAccess access;
  if (!access.has_target(window, rank) || !access.flush()) return false;
  progress_at_times(access.window());
  return true;
}

/// Performs MPI_Win_post or MPI_Win_start: perform(window, ranks of the group).
template <class Perform>
int with_members(Function function, MPI_Group group, MPI_Win handle, Perform perform) {
  return with_window_blocking(function, handle, [&](Window& window) {
    RanksPointer ranks;
    const int code = get_group(group, &ranks);
    return code == MPI_SUCCESS ? perform(window, *ranks) : code;
  });
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Win_fence(int asserts, MPI_Win window) {
  return with_window_blocking("MPI_Win_fence", window, [&](Window& w) { return fence_window(w, asserts); });
}
CANELE_MPI_NAME(Win_fence);

extern "C" int PMPI_Win_lock(int type, int rank, int asserts, MPI_Win window) {
  return with_window_blocking("MPI_Win_lock", window, [&](Window& w) { return lock_window(w, type, rank, asserts); });
}
CANELE_MPI_NAME(Win_lock);

extern "C" int PMPI_Win_unlock(int rank, MPI_Win window) {
  return with_window_blocking("MPI_Win_unlock", window, [&](Window& w) { return unlock_window(w, rank); });
}
CANELE_MPI_NAME(Win_unlock);

extern "C" int PMPI_Win_lock_all(int asserts, MPI_Win window) {
  return with_window_blocking("MPI_Win_lock_all", window, [&](Window& w) { return lock_all_of_window(w, asserts); });
}
CANELE_MPI_NAME(Win_lock_all);

extern "C" int PMPI_Win_unlock_all(MPI_Win window) {
  return with_window_blocking("MPI_Win_unlock_all", window, [](Window& w) { return unlock_all_of_window(w); });
}
CANELE_MPI_NAME(Win_unlock_all);

extern "C" int PMPI_Win_flush(int rank, MPI_Win window) {
  if (flush_fast(rank, window)) return MPI_SUCCESS;
  return with_window_blocking("MPI_Win_flush", window, [&](Window& w) { return flush_locked(w, rank); });
}
CANELE_MPI_NAME(Win_flush);

extern "C" int PMPI_Win_flush_local(int rank, MPI_Win window) {
  if (flush_fast(rank, window)) return MPI_SUCCESS;
  return with_window_blocking("MPI_Win_flush_local", window, [&](Window& w) { return flush_locked(w, rank); });
}
CANELE_MPI_NAME(Win_flush_local);

extern "C" int PMPI_Win_flush_all(MPI_Win window) {
  return with_window_blocking("MPI_Win_flush_all", window, [](Window& w) { return flush_all_locked(w); });
}
CANELE_MPI_NAME(Win_flush_all);

extern "C" int PMPI_Win_flush_local_all(MPI_Win window) {
  return with_window_blocking("MPI_Win_flush_local_all", window, [](Window& w) { return flush_all_locked(w); });
}
CANELE_MPI_NAME(Win_flush_local_all);

extern "C" int PMPI_Win_sync(MPI_Win window) {
  return with_window("MPI_Win_sync", window, [](const Window& w) { return sync_window(w); });
}
CANELE_MPI_NAME(Win_sync);

extern "C" int PMPI_Win_post(MPI_Group group, int asserts, MPI_Win window) {
  return with_members("MPI_Win_post", group, window,
                      [&](Window& w, const Ranks& ranks) { return post_window(w, ranks, asserts); });
}
CANELE_MPI_NAME(Win_post);

extern "C" int PMPI_Win_start(MPI_Group group, int asserts, MPI_Win window) {
  return with_members("MPI_Win_start", group, window,
                      [&](Window& w, const Ranks& ranks) { return start_window(w, ranks, asserts); });
}
CANELE_MPI_NAME(Win_start);

extern "C" int PMPI_Win_complete(MPI_Win window) {
  return with_window_blocking("MPI_Win_complete", window, [](Window& w) { return complete_window(w); });
}
CANELE_MPI_NAME(Win_complete);

extern "C" int PMPI_Win_wait(MPI_Win window) {
  return with_window_blocking("MPI_Win_wait", window, [](Window& w) { return wait_window(w); });
}
CANELE_MPI_NAME(Win_wait);

extern "C" int PMPI_Win_test(MPI_Win window, int* flag) {
  return with_window("MPI_Win_test", window, [&](Window& w) {
    const int code = given({{"flag", flag}});
    return code == MPI_SUCCESS ? test_window(w, flag) : code;
  });
}
CANELE_MPI_NAME(Win_test);
