// SPDX-License-Identifier: BSD-3-Clause
//
// State of the process: the one engine that MPI_Init starts, and who may use it when.
//
// Who: everything in starpu_glue. Threads: any; MPI_Init and MPI_Finalize may be called by different threads.
// Surprise: hooks of the host runtime and waits on piom conditions come at any time, also while MPI_Finalize runs in
//      another thread. They hold an EngineUse, and MPI_Finalize waits until the last one is gone.
#pragma once

#include <canele/canele.h>

#include <atomic>

namespace canele::mpi {

enum class Phase : int { before, running, ending, after };

Phase phase();

/// This process is the child of a fork, and MPI is its parent's: every call answers MPI_ERR_OTHER. Written before
/// fork() returns in the child.
extern constinit bool in_child __attribute__((visibility("hidden")));

/// The answer, with words.
int refuse_in_child();

/// The engine between MPI_Init and MPI_Finalize, else nullptr. For MPI calls, which may not overlap those two.
canele_engine_t* engine();

/// MPI_Init and MPI_Finalize. An MPI code.
int start(int asked_level);
int stop();

/// The thread level that MPI_Init or MPI_Init_thread has provided: what was asked for.
int thread_level();

/// True in the thread that called MPI_Init.
bool is_main_thread();

/// The engine for callers that do not know whether MPI runs: get() is nullptr if not, and stays valid otherwise.
class EngineUse {
 public:
  EngineUse();
  ~EngineUse();
  EngineUse(const EngineUse&) = delete;
  EngineUse& operator=(const EngineUse&) = delete;
  canele_engine_t* get() const { return engine_; }

 private:
  canele_engine_t* engine_;
};

/// Marks the calling thread as inside a completion callback, where blocking calls are refused.
class CallbackScope {
 public:
  CallbackScope() { ++depth; }
  ~CallbackScope() { --depth; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool here() { return depth != 0; }

 private:
  static constinit thread_local int depth __attribute__((tls_model("initial-exec")));
};

/// MPI_SUCCESS, or an error if the calling thread is inside a completion callback: for calls that block.
int may_block();

/// False if the user has forbidden the worker (CANELE_WORKER=none), which wins over StarPU's wishes.
bool worker_wanted();

}  // namespace canele::mpi
