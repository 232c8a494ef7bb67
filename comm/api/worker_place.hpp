// SPDX-License-Identifier: BSD-3-Clause
//
// Placement of the bound worker: announces it to the other processes of this host, chooses a core, and describes it.
//
// Used by engine_api, worker_api and observe_api. One thread at a time for an engine. Only pinned processes count as
// users of cores, because the cores of the others are unknown. The operating system places a worker whose process is
// not pinned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/collectives/placement.hpp"
#include "comm/engine/engine.hpp"
#include "ltask/core_register.hpp"
#include "ltask/topology.hpp"

namespace canele::comm::api {

/// Tells the other processes of this host where this process is pinned, if the settings ask for a bound worker. Called
/// before the ranks meet, so that no worker chooses a core before all processes have announced theirs. nullptr: nothing
/// to announce, or no way to do it.
std::unique_ptr<ltask::CoreRegister> register_cores(const Settings& settings);

/// Pins the running worker as CANELE_WORKER_PLACE says, which may put several ranks on one core; or else to the nearest
/// core that no process uses. If there is none, the worker stays with the program; if that is pinned, a warning says
/// so.
void place_worker(Engine& engine);

struct LocalRanks {
  std::uint32_t rank, count;
};
/// Returns the unit (OS index) of a worker by a policy. A pinned program goes by the units of its NUMA node: units that
/// programs are pinned to compute, and the others are left. An unpinned program goes by the number of ranks on this
/// host. Returns nothing if the topology of the machine is unknown.
std::optional<int> unit_by(collectives::placement::Policy policy, const ltask::Topology& topology,
                           const LocalRanks& here, const std::function<bool(int)>& is_computed_on);

/// Gives each rank of this host a unit that its background threads prefer, if the program is not pinned.
void set_rank_affinity(Engine& engine, const ltask::Topology& topology);

/// Releases the core of a worker that has ended.
void forget_place(Engine& engine);

/// Pins the running worker to these units. Logs a warning if that takes a core that another process uses. Returns "" or
/// the problem.
std::string pin_worker(Engine& engine, ltask::UnitIndex kind, std::span<const int> indexes);

/// Describes the workers of an engine, e.g. "bound: on PU 3" or "auto: ..." with the work of that thread.
std::string describe_workers(const Engine& engine);
/// Describes the workers of an engine that is started with these settings.
std::string describe_workers(const Settings& settings, const ltask::Topology& topology);

}  // namespace canele::comm::api
