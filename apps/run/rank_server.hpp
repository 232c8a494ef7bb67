// SPDX-License-Identifier: BSD-3-Clause
//
// RankServer: what canele-run needs of the server that the ranks talk to, whichever protocol they speak.
//
// Who: Job asks it; Server (PMIx) and Pmi1Server are it. Threads: main thread only.
// Surprise: joined() and left() are up to date when the process's end is seen, if clear_wake() was called after it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace canele::run {

/// A rank asked for the end of the job (MPI_Abort, PMIx_Abort, PMI_Abort).
struct AbortCall {
  int rank;
  int code;
  std::string reason;
};

class RankServer {
 public:
  virtual ~RankServer() = default;

  /// The environment for a rank: `base` and what it needs to find us ("NAME=value"). Once for each rank. Throws
  /// std::runtime_error if there is nothing left to make its connection of.
  virtual std::vector<std::string> environment(int rank, const std::vector<std::string>& base) = 0;
  /// After environment(): a descriptor that the rank must inherit under the same number; -1: none.
  virtual int rank_end(int rank) const {
    static_cast<void>(rank);
    return -1;
  }
  /// The rank runs: its end is its own now.
  virtual void started(int rank) { static_cast<void>(rank); }

  virtual bool joined(int rank) const = 0;
  virtual bool left(int rank) const = 0;
  virtual bool anyone_joined() const = 0;

  /// Readable when something has changed; clear_wake() before looking.
  virtual int wake_fd() const = 0;
  virtual void clear_wake() = 0;
  virtual std::optional<AbortCall> take_abort() = 0;

  /// Tells the other ranks that this one has died.
  virtual void tell_death(int rank, int exit_code) = 0;
};

}  // namespace canele::run
