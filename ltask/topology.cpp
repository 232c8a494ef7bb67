// SPDX-License-Identifier: BSD-3-Clause
//
// Topology, by hwloc.
//
// Who and threads: see topology.hpp. A loaded hwloc topology is read-only, so no lock is needed after the first use.
// Surprise: the process's mask is taken when the machine is first looked at, before our own worker is pinned.
#include "ltask/topology.hpp"

#include <hwloc.h>
#include <hwloc/linux.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace canele::ltask {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap empty_bitmap() { return Bitmap(hwloc_bitmap_alloc()); }

std::string list_text(hwloc_const_bitmap_t bitmap) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, bitmap) < 0 || text == nullptr) return {};
  std::string copy = text;
  std::free(text);
  return copy;
}

std::string counted(int n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

const char* kind_name(UnitIndex kind) { return kind == UnitIndex::logical ? "logical" : "OS"; }

}  // namespace

struct Topology::Loaded {
  std::once_flag once;
  std::string problem;
  hwloc_topology_t topology = nullptr;
  Bitmap allowed;  ///< the process's mask, within the topology

  ~Loaded() {
    if (topology != nullptr) hwloc_topology_destroy(topology);
  }

  void load() {
    if (hwloc_topology_init(&topology) != 0) {
      topology = nullptr;
      problem = "hwloc found no memory for a topology";
      return;
    }
    if (hwloc_topology_load(topology) != 0) {
      problem = std::string("hwloc cannot look at this machine: ") + std::strerror(errno);
      return;
    }
    allowed = empty_bitmap();
    // The main thread's mask stands for the process: other threads may have been pinned by their runtime.
    const auto all = hwloc_topology_get_topology_cpuset(topology);
    if (hwloc_linux_get_tid_cpubind(topology, getpid(), allowed.get()) != 0) hwloc_bitmap_copy(allowed.get(), all);
    hwloc_bitmap_and(allowed.get(), allowed.get(), all);
  }

  hwloc_obj_t unit(UnitIndex kind, int index) const {
    if (!problem.empty() || index < 0) return nullptr;
    const auto number = static_cast<unsigned>(index);
    return kind == UnitIndex::logical ? hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, number)
                                      : hwloc_get_pu_obj_by_os_index(topology, number);
  }

  int count(hwloc_obj_type_t type) const {
    const int n = problem.empty() ? hwloc_get_nbobjs_by_type(topology, type) : 0;
    return n < 0 ? 0 : n;
  }
};

Topology::Topology() : loaded_(std::make_unique<Loaded>()) {}
Topology::~Topology() = default;

const Topology::Loaded& Topology::loaded() const {
  std::call_once(loaded_->once, [this] { loaded_->load(); });
  return *loaded_;
}

const std::string& Topology::problem() const { return loaded().problem; }

int Topology::units() const { return loaded().count(HWLOC_OBJ_PU); }

int Topology::allowed_units() const { return problem().empty() ? hwloc_bitmap_weight(loaded().allowed.get()) : 0; }

std::string Topology::allowed_text() const { return problem().empty() ? list_text(loaded().allowed.get()) : ""; }

std::string Topology::describe() const {
  const Loaded& machine = loaded();
  if (!machine.problem.empty()) return {};
  return counted(machine.count(HWLOC_OBJ_PACKAGE), "package") + ", " +
         counted(machine.count(HWLOC_OBJ_NUMANODE), "NUMA node") + ", " +
         counted(machine.count(HWLOC_OBJ_CORE), "core") + ", " + counted(machine.count(HWLOC_OBJ_PU), "PU");
}

std::optional<int> Topology::os_index(UnitIndex kind, int index) const {
  const hwloc_obj_t unit = loaded().unit(kind, index);
  if (unit == nullptr) return std::nullopt;
  return static_cast<int>(unit->os_index);
}

std::string Topology::bind(long native_id, UnitIndex kind, std::span<const int> indexes) const {
  const Loaded& machine = loaded();
  if (!machine.problem.empty()) return machine.problem;
  const Bitmap wanted = empty_bitmap();
  for (const int index : indexes) {
    const hwloc_obj_t unit = machine.unit(kind, index);
    if (unit == nullptr) {
      return "there is no PU with " + std::string(kind_name(kind)) + " index " + std::to_string(index) +
             "; this process sees " + counted(units(), "PU") + " (OS indexes " +
             list_text(hwloc_topology_get_topology_cpuset(machine.topology)) + ")";
    }
    hwloc_bitmap_or(wanted.get(), wanted.get(), unit->cpuset);
  }
  if (indexes.empty()) hwloc_bitmap_copy(wanted.get(), machine.allowed.get());
  assert(!hwloc_bitmap_iszero(wanted.get()));
  if (hwloc_linux_set_tid_cpubind(machine.topology, static_cast<pid_t>(native_id), wanted.get()) == 0) return {};
  return "cannot pin thread " + std::to_string(native_id) + " to PUs " + list_text(wanted.get()) + ": " +
         std::strerror(errno);
}

std::string Topology::place_of(long native_id) const {
  const Loaded& machine = loaded();
  if (!machine.problem.empty()) return {};
  const Bitmap place = empty_bitmap();
  if (hwloc_linux_get_tid_cpubind(machine.topology, static_cast<pid_t>(native_id), place.get()) != 0) return {};
  return list_text(place.get());
}

}  // namespace canele::ltask
