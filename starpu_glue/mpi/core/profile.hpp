// SPDX-License-Identifier: BSD-3-Clause
//
// Profile: how often each MPI function was called and how long it took, for CANELE_PROFILE and canele-model.
//
// Used by Call around every MPI function and by request.cpp; state.cpp starts and ends it. Any thread. Times are
// exclusive. If a function is called inside another one (by an operator of the program, for example), its time counts
// as its own only. All times of a thread thus add up to the time it spent in MPI.
//
//   innermost call of a thread       tables, one a thread, kept until the process ends
//     MPI_Wait ──outer_──▶ MPI_Reduce      all ──▶ table ──▶ table ──▶ null      lease of a thread ──▶ its table
//
// Rejected: one table with atomic counters. Threads would take its cache lines from each other at every call. Rejected:
// a table under a lock. MPI_Test is called a million times.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "starpu_glue/mpi/core/function.hpp"

namespace canele::mpi::profile {

/// Threads that may be in MPI at a time. Calls of further threads are not counted, but the profile gives their number.
inline constexpr std::size_t kMostThreads = 256;

struct Table;

extern constinit std::atomic<bool> on;

/// Starts counting. The calling thread is the program's main thread. For MPI_Init: no other thread is in MPI.
void start();
/// Stops counting and writes the profile of rank `rank` of `ranks` into the file that `pattern` names ("%r" is the
/// rank, "-" stderr). For MPI_Finalize. Returns false, after a message, if the file could not be written.
bool stop(const char* pattern, int rank, int ranks);

/// One call of an MPI function, from construction to destruction. Costs a branch at either end if no profile is wanted.
class Profiled {
 public:
  explicit Profiled(Function function) {
    if (on.load(std::memory_order_relaxed)) [[unlikely]]
      enter(function);
  }
  ~Profiled() {
    if (table_ != nullptr) [[unlikely]]
      leave();
  }
  Profiled(const Profiled&) = delete;
  Profiled& operator=(const Profiled&) = delete;

 private:
  void enter(Function function);
  void leave();

  Table* table_ = nullptr;  ///< the other members are set with it
  Profiled* outer_;         ///< the enclosing MPI call of this thread
  std::uint64_t begin_ns_;
  std::uint64_t inner_ns_;  ///< time spent in calls inside this one
  std::size_t function_;
};

/// Data that a request keeps about the call that started it.
class Started {
 public:
  /// note() is for the call that returns the request, completed() for the call that completes it.
  void note() {
    table_ = nullptr;
    if (on.load(std::memory_order_relaxed)) [[unlikely]]
      note_now();
  }
  void completed() {
    if (table_ != nullptr) [[unlikely]]
      completed_now();
  }

 private:
  void note_now();
  void completed_now();

  Table* table_ = nullptr;
  std::uint64_t application_ns_ = 0;  ///< of the thread at the start.
  std::uint64_t visit_ = 0;           ///< its visits to MPI then; a blocking call ends in the same visit: no overlap
};

}  // namespace canele::mpi::profile
