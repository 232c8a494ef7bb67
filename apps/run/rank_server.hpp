// SPDX-License-Identifier: BSD-3-Clause
//
// RankServer: what canele-run needs of the server that the ranks talk to, whichever protocol they use.
//
// Job uses it; Server (PMIx) and Pmi1Server implement it. Main thread only. After clear_wake(), joined() and
// finalized() are up to date for every process whose end has been seen before that call.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace canele::run {

/// A rank's request to end the job (MPI_Abort, PMIx_Abort, PMI_Abort).
struct AbortCall {
  int rank;
  int code;
  std::string reason;
};

class RankServer {
 public:
  virtual ~RankServer() = default;

  /// Returns the environment for a rank: `base`, and what it needs to reach us ("NAME=value"). Called once for each
  /// rank. Throws std::runtime_error if its connection cannot be made.
  virtual std::vector<std::string> environment(int rank, const std::vector<std::string>& base) = 0;
  /// Returns a descriptor that the rank must inherit under the same number; -1: none. Called after environment().
  virtual int rank_end(int rank) const {
    static_cast<void>(rank);
    return -1;
  }
  /// Called when the rank runs. Its end of the connection then belongs to the rank alone.
  virtual void started(int rank) { static_cast<void>(rank); }

  virtual bool joined(int rank) const = 0;
  virtual bool finalized(int rank) const = 0;
  virtual bool anyone_joined() const = 0;

  /// Returns a descriptor that is readable when something has changed. Call clear_wake() before checking what has.
  virtual int wake_fd() const = 0;
  virtual void clear_wake() = 0;
  virtual std::optional<AbortCall> take_abort() = 0;

  /// Reports to the other ranks that this one has died.
  virtual void report_death(int rank, int exit_code) = 0;
};

}  // namespace canele::run
