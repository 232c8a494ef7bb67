// SPDX-License-Identifier: BSD-3-Clause
//
// Guard: a small process that cleans up when canele-run itself is killed.
//
// Who: main() starts it first of all (before any thread exists); each rank and Job tell it who lives.
// Threads: main thread only.
// Surprise: it needs no "all went well": when its pipe closes it kills the ranks it still knows of and every process
// that
//      has the job's mark in its environment (a daemon that a rank has started), removes the job's directory if that is
//      still there, and ends. After a clean run there is nothing of these.
#pragma once

#include <sys/types.h>

#include <string>

namespace canele::run {

class Guard {
 public:
  /// Throws std::runtime_error when there is no process or descriptor left.
  explicit Guard(const std::string& directory);
  /// What the ranks need in their environment ("NAME=value"): the directory's name, which no other job has.
  const std::string& mark() const { return mark_; }
  /// Waits for its end.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// A rank writes its process id here before it becomes the program. If we told it ourselves, after the fork, a rank
  /// could run unknown to the guard at the moment when we are killed.
  int fd() const { return pipe_; }
  void ended(pid_t rank);
  pid_t pid() const { return pid_; }

 private:
  std::string mark_;
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace canele::run
