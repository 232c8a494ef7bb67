// SPDX-License-Identifier: BSD-3-Clause
//
// Guard: a small process that cleans up if canele-run itself is killed.
//
// main() starts it first, before any thread exists. Each rank and Job report to it which ranks are alive. Main thread
// only. It needs no message that all went well. When its pipe closes, it kills the ranks it still knows. It also kills
// every process that has the job's mark in its environment (a daemon that a rank has started). It then removes the
// job's directory and ends. After a clean run none of these exist.
#pragma once

#include <sys/types.h>

#include <string>

namespace canele::run {

class Guard {
 public:
  /// Throws std::runtime_error if no process or descriptor is available.
  explicit Guard(const std::string& directory);
  /// Returns what the ranks need in their environment ("NAME=value"): the directory's name, which is unique to the job.
  const std::string& mark() const { return mark_; }
  /// Waits for the guard's end.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Returns the descriptor to which a rank writes its process id before it becomes the program. If we wrote the id
  /// after the fork, we could be killed before that, and a rank would run unknown to the guard.
  int fd() const { return pipe_; }
  void ended(pid_t rank);
  pid_t pid() const { return pid_; }

 private:
  std::string mark_;
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace canele::run
