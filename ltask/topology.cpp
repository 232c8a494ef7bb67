// SPDX-License-Identifier: BSD-3-Clause
//
// Topology, with hwloc.
//
// A loaded hwloc topology is read-only, so no lock is needed after the first use. The process's mask is read when the
// topology is loaded, before the library's own worker is pinned.
#include "ltask/topology.hpp"

#include <hwloc.h>
#include <hwloc/linux.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

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

std::vector<int> indexes_of(hwloc_const_bitmap_t bitmap) {
  std::vector<int> indexes;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) indexes.push_back(i);
  return indexes;
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

  void load(const char* synthetic = nullptr) {
    if (hwloc_topology_init(&topology) != 0) {
      topology = nullptr;
      problem = "hwloc found no memory for a topology";
      return;
    }
    if (synthetic != nullptr && hwloc_topology_set_synthetic(topology, synthetic) != 0) {
      problem = std::string("hwloc does not understand the machine \"") + synthetic + "\"";
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

Topology::Topology(const std::string& synthetic, std::span<const int> pinned_to) : Topology() {
  std::call_once(loaded_->once, [&] {
    loaded_->load(synthetic.c_str());
    if (!loaded_->problem.empty()) return;
    hwloc_bitmap_copy(loaded_->allowed.get(), hwloc_topology_get_topology_cpuset(loaded_->topology));
    if (!pinned_to.empty()) hwloc_bitmap_zero(loaded_->allowed.get());
    for (const int unit : pinned_to) hwloc_bitmap_set(loaded_->allowed.get(), static_cast<unsigned>(unit));
  });
}

const Topology::Loaded& Topology::loaded() const {
  std::call_once(loaded_->once, [this] { loaded_->load(); });
  return *loaded_;
}

const std::string& Topology::problem() const { return loaded().problem; }

int Topology::units() const { return loaded().count(HWLOC_OBJ_PU); }

int Topology::allowed_units() const { return problem().empty() ? hwloc_bitmap_weight(loaded().allowed.get()) : 0; }

std::string Topology::allowed_text() const { return problem().empty() ? list_text(loaded().allowed.get()) : ""; }

bool Topology::is_pinned() const {
  const Loaded& machine = loaded();
  return machine.problem.empty() &&
         hwloc_bitmap_isequal(machine.allowed.get(), hwloc_topology_get_topology_cpuset(machine.topology)) == 0;
}

std::vector<int> Topology::own_units() const {
  return problem().empty() ? indexes_of(loaded().allowed.get()) : std::vector<int>{};
}

std::vector<Topology::Core> Topology::cores_nearby() const {
  std::vector<Core> cores;
  if (!is_pinned()) return cores;
  const Loaded& machine = loaded();
  const hwloc_obj_type_t type = machine.count(HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  const hwloc_const_bitmap_t own = machine.allowed.get();
  std::vector<std::pair<int, Core>> found;  // with the weight of the object that contains both
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(machine.topology, type, core)) != nullptr;) {
    const Bitmap rest = empty_bitmap(), both = empty_bitmap();
    hwloc_bitmap_andnot(rest.get(), core->cpuset, own);
    if (hwloc_bitmap_iszero(rest.get())) continue;
    hwloc_bitmap_or(both.get(), core->cpuset, own);
    const hwloc_obj_t around = hwloc_get_obj_covering_cpuset(machine.topology, both.get());
    const int weight = around != nullptr ? hwloc_bitmap_weight(around->cpuset) : machine.count(HWLOC_OBJ_PU);
    found.emplace_back(weight, Core{indexes_of(rest.get()), hwloc_bitmap_intersects(core->cpuset, own) != 0});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [weight, core] : found) cores.push_back(std::move(core));
  return cores;
}

std::vector<Topology::Object> Topology::objects() const {
  std::vector<Object> objects;
  const Loaded& machine = loaded();
  if (!machine.problem.empty()) return objects;
  constexpr std::pair<Kind, hwloc_obj_type_t> kinds[] = {{Kind::machine, HWLOC_OBJ_MACHINE},
                                                         {Kind::package, HWLOC_OBJ_PACKAGE},
                                                         {Kind::numa_node, HWLOC_OBJ_NUMANODE},
                                                         {Kind::core, HWLOC_OBJ_CORE},
                                                         {Kind::unit, HWLOC_OBJ_PU}};
  std::vector<std::pair<Object, hwloc_obj_t>> found;
  for (const auto& [kind, type] : kinds) {
    for (hwloc_obj_t one = nullptr; (one = hwloc_get_next_obj_by_type(machine.topology, type, one)) != nullptr;) {
      found.push_back({{kind, static_cast<int>(one->logical_index), -1, indexes_of(one->cpuset)}, one});
    }
  }
  // Whether packages or NUMA nodes are larger differs from machine to machine.
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first.units.size() > b.first.units.size(); });
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t before = i; before-- > 0 && found[i].first.within < 0;) {
      if (hwloc_bitmap_isincluded(found[i].second->cpuset, found[before].second->cpuset) != 0)
        found[i].first.within = static_cast<int>(before);
    }
    objects.push_back(found[i].first);
  }
  return objects;
}

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
