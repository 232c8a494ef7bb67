// SPDX-License-Identifier: BSD-3-Clause
//
// Guard: a small process that cleans up when canele-run itself is killed.
//
// Who: Job starts it first of all (before any thread exists) and tells it of each rank.
// Threads: main thread only.
// Surprise: it needs no "all went well": when its pipe closes it kills the ranks it still knows of, removes the job's
//      directory if that is still there, and ends. After a clean run there is nothing of either.
#pragma once

#include <sys/types.h>

#include <string>

namespace canele::run {

class Guard {
 public:
  /// Throws std::runtime_error when there is no process or descriptor left.
  explicit Guard(const std::string& directory);
  /// Waits for its end.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void started(pid_t rank) { tell(rank); }
  void ended(pid_t rank) { tell(-rank); }
  pid_t pid() const { return pid_; }

 private:
  void tell(pid_t what);
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace canele::run
