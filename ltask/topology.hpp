// SPDX-License-Identifier: BSD-3-Clause
//
// Topology: the processing units (PUs) of this machine as this process may use them, and pinning threads to them.
//
// Who: the engine binds its worker with it; canele_info_json describes the machine with it.
// Threads: any; the machine is looked at once, at the first call that needs it, which takes some milliseconds.
// Surprise: units outside the process's cgroup do not exist here; logical indexes count the rest, as StarPU counts
//     them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace canele::ltask {

/// How a PU is named: by hwloc's logical index (neighbours have neighbouring numbers) or by the system's number.
enum class UnitIndex { logical, os };

class Topology {
 public:
  Topology();
  /// Another machine, for tests: hwloc's description of it, such as "pack:2 core:4 pu:2"; the process is pinned to
  /// these PUs (OS indexes; none: not pinned).
  Topology(const std::string& synthetic, std::span<const int> pinned_to);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// "" or why hwloc could not look at the machine. All functions below then fail with this reason.
  const std::string& problem() const;

  /// Number of PUs; 0 after a problem.
  int units() const;

  /// Number of PUs that this process may run on (its affinity mask), and their OS indexes as "0-3,8".
  int allowed_units() const;
  std::string allowed_text() const;

  /// The process may not run everywhere in this machine. OS indexes of the PUs where it may.
  bool is_pinned() const;
  std::vector<int> own_units() const;

  /// A core with its PUs that this process is not pinned to (OS indexes).
  struct Core {
    std::vector<int> units;
    bool ours = false;  ///< the process is pinned to others of its PUs
  };
  /// Of a pinned process: nearest first, by the smallest part of the machine that holds the core and where the process
  /// runs. Empty if it is not pinned.
  std::vector<Core> cores_nearby() const;

  /// The parts of the machine that have a name here: the whole, then packages, NUMA nodes, cores and PUs, each after
  /// the part that holds it. Empty after a problem.
  enum class Kind { machine, package, numa_node, core, unit };
  struct Part {
    Kind kind;
    int index;               ///< hwloc logical index among its kind
    int within;              ///< place in this list of the smallest part that holds it; -1: it is the whole
    std::vector<int> units;  ///< OS indexes
  };
  std::vector<Part> parts() const;

  /// "1 package, 1 NUMA node, 2 cores, 2 PUs".
  std::string describe() const;

  /// OS index of the PU with this index, or nothing.
  std::optional<int> os_index(UnitIndex kind, int index) const;

  /// Pins thread `native_id` (gettid; 0: the caller) to these PUs. No index: back to all that the process may use.
  /// "" or what is wrong; the thread then keeps its place.
  std::string bind(long native_id, UnitIndex kind, std::span<const int> indexes) const;

  /// OS indexes of the PUs that a thread may run on, as "1" or "0-1"; "" if it cannot be told.
  std::string place_of(long native_id) const;

 private:
  struct Loaded;
  const Loaded& loaded() const;

  std::unique_ptr<Loaded> loaded_;
};

}  // namespace canele::ltask
