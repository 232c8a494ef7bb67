// SPDX-License-Identifier: BSD-3-Clause
//
// Topology: the processing units (PUs) of this machine that this process may use, and pinning of threads to them.
//
// The engine binds its worker with it; canele_info_json describes the machine with it. Any thread. The first call that
// needs the machine loads the topology, which takes some milliseconds.
//
// PUs outside the process's cgroup do not exist here. Logical indexes count the remaining PUs, as in StarPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace canele::ltask {

/// How a PU is named: by hwloc's logical index (adjacent PUs have adjacent numbers) or by the system's number.
enum class UnitIndex { logical, os };

class Topology {
 public:
  Topology();
  /// Describes another machine, for tests, by an hwloc description such as "pack:2 core:4 pu:2". The process is pinned
  /// to the PUs of `pinned_to` (OS indexes; none: not pinned).
  Topology(const std::string& synthetic, std::span<const int> pinned_to);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// Returns "", or why hwloc could not load the machine's topology. All functions below then fail with this reason.
  const std::string& problem() const;

  /// Returns the number of PUs; 0 after a problem.
  int units() const;

  /// Return the number of PUs that this process may run on (its affinity mask), and their OS indexes as "0-3,8".
  int allowed_units() const;
  std::string allowed_text() const;

  /// is_pinned(): whether the process may not run everywhere in this machine. own_units(): OS indexes of the PUs where
  /// it may run.
  bool is_pinned() const;
  std::vector<int> own_units() const;

  /// A core, with those of its PUs that this process is not pinned to (OS indexes).
  struct Core {
    std::vector<int> units;
    bool ours = false;  ///< the process is pinned to other PUs of this core
  };
  /// Returns the cores near a pinned process, nearest first. Distance is the size of the smallest object of the
  /// topology that contains both the core and the process. Empty if the process is not pinned.
  std::vector<Core> cores_nearby() const;

  /// The objects of the topology that have a name here: the whole machine, packages, NUMA nodes, cores and PUs. Each
  /// comes after the object that contains it. Empty after a problem.
  enum class Kind { machine, package, numa_node, core, unit };
  struct Object {
    Kind kind;
    int index;   ///< hwloc logical index among its kind.
    int within;  ///< index in this list of the smallest object that contains it; -1: none, it is the whole machine.
    std::vector<int> units;  ///< OS indexes.
  };
  std::vector<Object> objects() const;

  /// Returns a text such as "1 package, 1 NUMA node, 2 cores, 2 PUs".
  std::string describe() const;

  /// Returns the OS index of the PU with this index, or nothing.
  std::optional<int> os_index(UnitIndex kind, int index) const;

  /// Pins thread `native_id` (gettid; 0: the caller) to these PUs; no index: to all PUs that the process may use.
  /// Returns "", or what is wrong; the thread then keeps its place.
  std::string bind(long native_id, UnitIndex kind, std::span<const int> indexes) const;

  /// Returns the OS indexes of the PUs that a thread may run on, as "1" or "0-1"; "" if that is unknown.
  std::string place_of(long native_id) const;

 private:
  struct Loaded;
  const Loaded& loaded() const;

  std::unique_ptr<Loaded> loaded_;
};

}  // namespace canele::ltask
