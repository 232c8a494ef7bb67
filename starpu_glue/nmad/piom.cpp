// SPDX-License-Identifier: BSD-3-Clause
//
// piom_: conditions, progress hooks and placement of the worker.
//
// Called from any of StarPU's threads, at any time, also before MPI_Init and during and after MPI_Finalize. None of
// these functions is given an engine. They use the one that MPI_Init made, and hold it with EngineUse.
#include <pioman.h>

#include <cstring>
#include <string>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/environment/start.hpp"

using namespace canele;

static_assert(sizeof(piom_cond_t) >= sizeof(canele_condition_t) && alignof(canele_condition_t) <= 16);

namespace {

canele_condition_t* inside(piom_cond_t* condition) { return reinterpret_cast<canele_condition_t*>(condition); }

void bind_worker(canele_index_kind kind, const int* indexes, int count) {
  const mpi::EngineUse use;
  if (use.get() == nullptr) {
    mpi::warn("the worker cannot be bound before MPI_Init or after MPI_Finalize");
    return;
  }
  if (!mpi::worker_wanted()) return;
  if (canele_worker_bind(use.get(), kind, indexes, count) == CANELE_OK) return;
  const std::string reason = canele_error_detail();
  // It must run even if it cannot be pinned: StarPU makes no progress by itself.
  const bool runs = canele_worker_active(use.get()) != 0 ||
                    canele_worker_bind(use.get(), CANELE_INDEX_LOGICAL, nullptr, 0) == CANELE_OK;
  mpi::warn("the worker could not be bound to %s index %d (%s); it %s", kind == CANELE_INDEX_OS ? "OS" : "logical",
            count > 0 ? indexes[0] : -1, reason.c_str(), runs ? "runs unbound" : "does not run");
}

}  // namespace

extern "C" void piom_cond_init(piom_cond_t* condition, piom_cond_value_t initial) {
  std::memset(condition, 0, sizeof *condition);
  if (initial != 0) canele_condition_signal(inside(condition), initial);
}

extern "C" void piom_cond_destroy(piom_cond_t*) {}

extern "C" void piom_cond_signal(piom_cond_t* condition, piom_cond_value_t mask) {
  canele_condition_signal(inside(condition), mask);
}

extern "C" void piom_cond_wait(piom_cond_t* condition, piom_cond_value_t mask) {
  const mpi::EngineUse use;
  const int error = canele_condition_wait(use.get(), inside(condition), mask);
  if (error == CANELE_OK || canele_condition_test(inside(condition), mask) != 0) return;
  if (error != CANELE_EDEADLK) mpi::fatal("a wait for a StarPU request failed: %s", canele_error_detail());
  mpi::fatal("a wait for a StarPU request was made inside a completion callback, where it could never end");
}

extern "C" piom_cond_value_t piom_cond_test_locked(piom_cond_t* condition, piom_cond_value_t mask) {
  return canele_condition_test(inside(condition), mask);
}

extern "C" int piom_ltask_schedule(int) {
  const mpi::EngineUse use;
  if (use.get() == nullptr) return 1;
  const int worked = canele_progress(use.get());
  return canele_worker_active(use.get()) != 0 || worked == 0 ? 1 : 0;
}

extern "C" void piom_ltask_set_bound_thread_indexes(int, const int* indexes, int count) {
  bind_worker(CANELE_INDEX_LOGICAL, indexes, count);
}

extern "C" void piom_ltask_set_bound_thread_os_indexes(int, const int* indexes, int count) {
  bind_worker(CANELE_INDEX_OS, indexes, count);
}
