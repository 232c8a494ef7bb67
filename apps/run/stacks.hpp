// SPDX-License-Identifier: BSD-3-Clause
//
// Stacks: prints the stacks of ranks, one after the other, with gdb, on our stderr.
//
// Job uses it when the time limit is reached under --stacks. Main thread only. It does not wait: start_next() starts
// one gdb, and the loop calls it again when that process has ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace canele::run {

class Stacks {
 public:
  struct Rank {
    int rank;
    pid_t pid;
  };
  explicit Stacks(std::vector<Rank> ranks);
  /// Starts the next gdb. Returns its process id; 0 if there is nothing left to print.
  pid_t start_next();

 private:
  std::vector<Rank> ranks_;
  std::size_t next_ = 0;
  std::string gdb_;
};

}  // namespace canele::run
