// SPDX-License-Identifier: BSD-3-Clause
//
// Core register: which processing units (PUs) of this host the processes of one user are pinned to, and which their
// workers use. A worker uses it to choose a core that no thread uses.
//
// Used by api/worker_place. One thread at a time.
//
// The register is an empty file. Its contents are the locks on its bytes. The kernel releases the locks of a process
// that dies. The last process to leave removes the file.
//
//   byte:    0                      1 + PU
//   shared:  each process here      processes that are pinned to the PU (and perhaps to others)
//   alone:   the last process       the worker that has it
//
// Rejected: a table in shared memory (a killed process stays in it).
// Rejected: asking the launcher (it knows nothing of other jobs, nor of workers that start later).
// Rejected: names of sockets (no two processes can share one, and ranks in network namespaces of their own do not see
// them).
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
  /// Opens the register in this directory, and creates it if necessary. "": where the system keeps shared memory.
  /// Returns nullptr and sets *why if that fails. Waits for no other process.
  static std::unique_ptr<CoreRegister> open(std::string directory, std::string* why);
  ~CoreRegister();
  CoreRegister(const CoreRegister&) = delete;
  CoreRegister& operator=(const CoreRegister&) = delete;

  /// Records that this process is pinned to these units (OS indexes).
  void compute_on(std::span<const int> units);
  /// Returns one of these units that the worker of another process already had, if any.
  std::optional<int> lost_to_a_worker() const { return lost_; }

  /// Takes the unit for the worker, which gives back its previous one. This process itself may be pinned to the unit.
  /// Returns false if another process is pinned to it, or another worker has it. The worker then has no unit.
  bool take(int unit);
  /// Gives the worker's unit back.
  void give_back();
  /// Returns whether no process is pinned to the unit and no worker but that of this process has it.
  bool is_free(int unit) const;
  /// Returns whether a process is pinned to the unit, including this process.
  bool is_computed_on(int unit) const;

 private:
  CoreRegister(std::string file, int descriptor, int workers);

  std::string file_;
  int descriptor_;  ///< holds the shared locks.
  int workers_;     ///< the register file, opened again; holds the worker's lock.
  std::vector<int> computing_;
  std::optional<int> taken_, lost_;
};

/// Returns the free unit nearest to where this process is pinned. It prefers a core that no thread uses at all. Returns
/// nothing if the process is not pinned, or no unit is free.
std::optional<int> free_unit_nearby(const Topology& topology, const CoreRegister& cores);

}  // namespace canele::ltask
