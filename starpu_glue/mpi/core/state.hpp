// SPDX-License-Identifier: BSD-3-Clause
//
// State of the process: the one engine that MPI_Init or the first session starts, and which callers may use it when.
//
// The phase is that of MPI_Init and MPI_Finalize. The engine runs as long as one of them or a session needs it.
//
// Any thread; different threads may call MPI_Init and MPI_Finalize. Hooks of the host runtime and waits on piom
// conditions may come at any time, also while MPI_Finalize runs in another thread. They hold an EngineUse, and
// MPI_Finalize waits until the last one is destroyed.
#pragma once

#include <canele/canele.h>

#include <atomic>

namespace canele::mpi {

enum class Phase : int { before, running, ending, after };

Phase phase();

/// True in the child of a fork. MPI belongs to the parent, so every call returns MPI_ERR_OTHER. Written before fork()
/// returns in the child.
extern constinit bool in_child __attribute__((visibility("hidden")));

/// Returns that error, with a detail.
int reject_in_child();

/// Returns the engine while it runs, else nullptr. For MPI calls, which may not overlap its start and its end.
canele_engine_t* engine();

/// Returns the thread level that MPI_Init or MPI_Init_thread has provided: the level asked for.
int thread_level();

/// Returns true in the thread that called MPI_Init.
bool is_main_thread();

/// Holds the engine for callers that do not know whether MPI runs: get() is nullptr if not, and stays valid otherwise.
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

/// Marks the calling thread as inside a completion callback, where blocking calls are rejected.
class CallbackScope {
 public:
  CallbackScope() { ++depth; }
  ~CallbackScope() { --depth; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool here() { return depth != 0; }

 private:
  static constinit thread_local int depth;
};

/// Returns an error if the calling thread is inside a completion callback, else MPI_SUCCESS. For blocking calls.
int may_block();

/// These functions are for MPI_Init and MPI_Finalize. The first changes the phase if it is *expected, else writes the
/// phase there and returns false.
bool change_phase(Phase* expected, Phase next);
void set_phase(Phase next);
/// Makes the calling thread the main thread, and keeps the thread level that it has asked for.
void set_main_thread(int asked_level);
/// Gives the engine to all threads.
void publish_engine(canele_engine_t* made);
/// Takes the engine back. Blocks until no EngineUse holds it.
canele_engine_t* take_engine_back();

}  // namespace canele::mpi
