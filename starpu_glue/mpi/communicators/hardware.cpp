// SPDX-License-Identifier: BSD-3-Clause
//
// The hardware to which this process is restricted, by hwloc. Any thread.
#include "starpu_glue/mpi/communicators/hardware.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <type_traits>

namespace canele::mpi {
namespace {

constexpr hwloc_obj_type_t kTypes[] = {HWLOC_OBJ_MACHINE, HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_L3CACHE,
                                       HWLOC_OBJ_L2CACHE, HWLOC_OBJ_CORE,    HWLOC_OBJ_PU};
static_assert(std::size(kTypes) == hardware_kind_count);

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using MachineTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, Destroy>;

/// Loads the whole topology, also what the process may not use, so that all processes give an object one number.
MachineTopology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  MachineTopology topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

/// Returns the number of the first object of a type that has all of the processors; -1: none has.
std::int32_t object_around(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t processors) {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
    if (hwloc_bitmap_isincluded(processors, object->cpuset) != 0)
      return static_cast<std::int32_t>(object->logical_index);
  }
  return -1;
}

void read_machine(char* text, int size) {
  std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  const bool is_read = file != nullptr && std::fgets(text, size, file) != nullptr;
  if (file != nullptr) std::fclose(file);
  if (!is_read && gethostname(text, static_cast<std::size_t>(size) - 1) != 0) text[0] = '\0';
}

}  // namespace

int hardware_kind(std::string_view name) {
  const auto* const found = std::find(std::begin(hardware_kinds), std::end(hardware_kinds), name);
  return found == std::end(hardware_kinds) ? -1 : static_cast<int>(found - std::begin(hardware_kinds));
}

HardwarePlace own_hardware_place() {
  HardwarePlace place{};
  read_machine(place.machine, sizeof place.machine);
  std::fill(std::begin(place.objects), std::end(place.objects), -1);
  const MachineTopology topology = load_topology();
  const Bitmap processors(hwloc_bitmap_alloc());
  if (topology == nullptr || processors == nullptr) return place;
  if (hwloc_get_cpubind(topology.get(), processors.get(), HWLOC_CPUBIND_PROCESS) != 0) return place;
  for (int kind = 0; kind < hardware_kind_count; ++kind)
    place.objects[kind] = object_around(topology.get(), kTypes[kind], processors.get());
  return place;
}

}  // namespace canele::mpi
