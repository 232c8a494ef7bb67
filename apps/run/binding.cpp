// SPDX-License-Identifier: BSD-3-Clause
//
// Binding by hwloc.
#include "apps/run/binding.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>

#include <charconv>
#include <map>
#include <memory>
#include <stdexcept>

namespace canele::run {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw std::runtime_error("--bind-to: hwloc failed to start");
  Topology topology(raw, hwloc_topology_destroy);
  // hwloc accepts the second flag only with the first. The second leaves out the processors that taskset or a batch
  // system denies us.
  const unsigned long flags = HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING;
  if (hwloc_topology_set_flags(raw, flags) != 0 || hwloc_topology_load(raw) != 0)
    throw std::runtime_error("--bind-to: hwloc cannot read this machine's topology");
  return topology;
}

std::vector<cpu_set_t> all_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<cpu_set_t> places;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    cpu_set_t set;
    if (!hwloc_bitmap_iszero(object->cpuset) &&
        hwloc_cpuset_to_glibc_sched_affinity(topology, object->cpuset, &set, sizeof set) == 0)
      places.push_back(set);
  }
  return places;
}

/// Parses "0,2,4": logical core numbers.
std::vector<cpu_set_t> listed(const std::string& what, const std::vector<cpu_set_t>& cores) {
  std::vector<cpu_set_t> places;
  for (const char *next = what.data(), *end = next + what.size(); next <= end;) {
    std::size_t core = 0;
    const auto [rest, bad] = std::from_chars(next, end, core);
    if (bad != std::errc() || (rest != end && *rest != ','))
      throw std::invalid_argument(fmt::format(
          "--bind-to {}; expected: none, core, hwthread, numa, socket, or a list of core numbers such as 0,2,4", what));
    if (core >= cores.size())
      throw std::invalid_argument(
          fmt::format("--bind-to {}: there is no core {}; expected: cores 0 to {}", what, core, cores.size() - 1));
    places.push_back(cores[core]);
    next = rest + 1;
  }
  return places;
}

}  // namespace

std::vector<cpu_set_t> binding_places(const std::string& what) {
  if (what == "none") return {};
  static const std::map<std::string, hwloc_obj_type_t> kinds = {{"core", HWLOC_OBJ_CORE},
                                                                {"hwthread", HWLOC_OBJ_PU},
                                                                {"numa", HWLOC_OBJ_NUMANODE},
                                                                {"socket", HWLOC_OBJ_PACKAGE},
                                                                {"package", HWLOC_OBJ_PACKAGE}};
  const Topology topology = load_topology();
  const auto kind = kinds.find(what);
  std::vector<cpu_set_t> places = all_of(topology.get(), kind == kinds.end() ? HWLOC_OBJ_CORE : kind->second);
  if (places.empty()) places = all_of(topology.get(), HWLOC_OBJ_PU);  // some machines do not report their cores
  return kind == kinds.end() ? listed(what, places) : places;
}

}  // namespace canele::run
