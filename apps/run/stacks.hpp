// SPDX-License-Identifier: BSD-3-Clause
//
// Stacks: prints the stacks of ranks, one after the other, with gdb, on our stderr.
//
// Who: Job, when the time limit is reached under --stacks. Threads: main thread only.
// Surprise: it does not wait: start_next() starts one gdb; the loop calls it again when that process has ended.
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
  /// The process id of the gdb that now runs; 0 when there is nothing left to print.
  pid_t start_next();

 private:
  std::vector<Rank> ranks_;
  std::size_t next_ = 0;
  std::string gdb_;
};

}  // namespace canele::run
