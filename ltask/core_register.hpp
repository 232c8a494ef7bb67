// SPDX-License-Identifier: BSD-3-Clause
//
// Core register: which processing units (PUs) of this host the processes of one user are pinned to, and which their
// workers have; so that a worker takes a core that nobody uses.
//
// Who: api/worker_place.
// Threads: one at a time.
// Surprise: the register is an empty file. What it says are the locks on its bytes, which the kernel takes back from a
//     process that dies; the last process to leave removes the file.
//
//   byte:    0                    1 + PU
//   shared:  whoever is here      processes that are pinned to the PU (and perhaps to others)
//   alone:   the last one         the worker that has it
//
// Rejected: a table in shared memory (a killed process stays in it); to ask the launcher (it knows nothing of other
//     jobs, nor of workers that start later); names of sockets (no two processes can share one, and ranks in network
//     namespaces of their own do not see them).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace canele::ltask {

class Topology;

class CoreRegister {
 public:
  /// Opens the register in this directory, and makes it if it is not there. "": where the system keeps shared memory.
  /// nullptr and *why if that is not possible. Waits for nobody.
  static std::unique_ptr<CoreRegister> open(std::string directory, std::string* why);
  ~CoreRegister();
  CoreRegister(const CoreRegister&) = delete;
  CoreRegister& operator=(const CoreRegister&) = delete;

  /// This process is pinned to these units (OS indexes).
  void compute_on(std::span<const int> units);
  /// One of them that is a worker's of another process, which was there before.
  std::optional<int> lost_to_a_worker() const { return lost_; }

  /// The worker takes the unit, and gives back the one it had; also one that its own process is pinned to. False:
  /// another process is pinned to it, or another worker has it; then it has none.
  bool take(int unit);
  /// The worker has none any more.
  void give_back();
  /// No process is pinned to it, and no worker has it but that of this process.
  bool is_free(int unit) const;
  /// A process is pinned to it, this one included.
  bool is_computed_on(int unit) const;

 private:
  CoreRegister(std::string file, int descriptor, int workers);

  std::string file_;
  int descriptor_;  ///< holds the shared locks
  int workers_;     ///< the same file, opened again: holds the lock of the worker
  std::vector<int> computing_;
  std::optional<int> taken_, lost_;
};

/// The free unit that is nearest to where this process is pinned, of a core that nobody uses at all if there is one.
/// Nothing: the process is not pinned, or no unit is free.
std::optional<int> free_unit_nearby(const Topology& topology, const CoreRegister& cores);

}  // namespace canele::ltask
