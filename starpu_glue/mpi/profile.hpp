// SPDX-License-Identifier: BSD-3-Clause
//
// Profile: how often each MPI function was called and how long it took, for CANELE_PROFILE and canele-model.
//
// Who: Call, around every MPI function; request.cpp; state.cpp starts and ends it. Threads: any.
// Surprise: times are exclusive. A function that is called inside another (by an operator of the program's, say) has
//     its time counted as its own only, so all times of a thread add up to what it spent in MPI, and no more.
//
//   innermost call of a thread       tables, one a thread, kept until the process ends
//     MPI_Wait ──outer_──▶ MPI_Reduce      all ──▶ table ──▶ table ──▶ null      lease of a thread ──▶ its table
//
// One table with atomic counters was rejected: threads would take its lines from each other at every call. A table
// under a lock was, too: MPI_Test is called a million times.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "starpu_glue/mpi/function.hpp"

namespace canele::mpi::profile {

/// Threads that may be in MPI at a time; what further ones do is not counted, but their number is told.
inline constexpr std::size_t kMostThreads = 256;

struct Table;

extern constinit std::atomic<bool> on;

/// Counts from now on; the calling thread is the program's main one. For MPI_Init: no other thread is in MPI.
void start();
/// Counts no more, and writes the profile of rank `rank` of `ranks` into the file that `pattern` names ("%r" is the
/// rank, "-" stderr). For MPI_Finalize. False if the file could not be written; that is said.
bool stop(const char* pattern, int rank, int ranks);

/// One call of an MPI function, from construction to destruction. Switched off it costs a branch at either end.
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

  Table* table_ = nullptr;  ///< the rest is set with it
  Profiled* outer_;         ///< the call of this thread that this one is inside of
  std::uint64_t begin_ns_;
  std::uint64_t inner_ns_;  ///< spent in calls inside this one
  std::size_t function_;
};

/// What a request remembers of the call that has started it.
class Started {
 public:
  /// For the call that hands a request out, and the one that completes it.
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
  std::uint64_t application_ns_ = 0;  ///< of the thread at the start, and its visits to MPI: that of a blocking call
  std::uint64_t visit_ = 0;           ///< ends in the same visit, and is none that anything could be computed beside
};

}  // namespace canele::mpi::profile
