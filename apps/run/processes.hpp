// SPDX-License-Identifier: BSD-3-Clause
//
// Processes: starts the ranks, passes signals to them, reaps them, and leaves none behind.
//
// Main thread only, because a rank dies with the thread that started it. Each rank leads its own process group, so that
// a signal reaches what a wrapper script has started. A process that leaves its group and its parent (a daemon) becomes
// our child, and orphans() finds it.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace canele::run {

/// Everything about a rank that must be known before the fork.
struct Launch {
  std::string file;                      ///< path to execute
  std::vector<std::string> arguments;    ///< argv
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string directory;                 ///< "": ours
  int stdin_fd, stdout_fd, stderr_fd;
  int guard_fd;           ///< the rank first writes its process id here
  int server_fd = -1;     ///< the rank inherits it under the same number; -1: none
  int namespace_fd = -1;  ///< the network name space that it enters; -1: stays in ours
  bool bind = false;
  cpu_set_t cpus;
};

/// How a child process ended.
struct Ended {
  int rank;  ///< -1: not a rank
  pid_t pid;
  int status;  ///< as of waitpid
};

/// Finds `program` as execvp would, seen from `directory`. Returns "" and sets *why and *code if it cannot be executed.
std::string find_program(const std::string& program, const std::string& directory, std::string* why, int* code);

class Processes {
 public:
  /// `rank_signals`: the signal mask that ranks start with. Raises our own limit of open files as far as allowed,
  /// because many ranks need many pipes and connections. Ranks get the old limit.
  explicit Processes(const sigset_t& rank_signals);

  /// Starts a rank. Returns 0, or the errno of what failed, in the child or before; *why then names it. *not_found:
  /// there is no such program.
  int start(const Launch& launch, std::string* why, bool* not_found);
  /// Reaps the next child that has ended, without waiting. Returns false if there is none.
  bool reap(Ended* ended);
  /// Sends a signal to the process groups of all running ranks.
  void signal_all(int signal);

  int running() const { return running_; }
  pid_t pid(int rank) const { return ranks_[static_cast<std::size_t>(rank)].pid; }
  bool is_running(int rank) const { return ranks_[static_cast<std::size_t>(rank)].running; }

  /// Returns the states of the running ranks: the letters of proc(5), and the ranks in each state.
  std::map<char, std::vector<int>> states() const;

  /// Returns the children of this process that are no ranks, except `guard`.
  std::vector<pid_t> orphans(pid_t guard) const;

 private:
  struct Rank {
    pid_t pid;
    bool running;
  };
  std::vector<Rank> ranks_;
  int running_ = 0;
  sigset_t rank_signals_;
  rlimit rank_files_ = {};  ///< all 0: unknown, do not change it
};

}  // namespace canele::run
