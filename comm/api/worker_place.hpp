// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bound worker runs: told to the other processes of this host, chosen where nobody says, and described.
//
// Who: api/engine_api, worker_api, observe_api.
// Threads: one at a time for an engine.
// Surprise: only processes that are pinned use cores, as far as can be told; a worker beside one that is not goes
//     wherever the system puts it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/collectives/placement.hpp"
#include "comm/core/engine.hpp"
#include "ltask/core_register.hpp"
#include "ltask/topology.hpp"

namespace canele::comm::api {

/// Tells the others of this host where this process is pinned, if the settings ask for a bound worker. Before the ranks
/// meet, so that no worker chooses before all have told. nullptr: nothing to tell, or no way to.
std::unique_ptr<ltask::CoreRegister> register_cores(const Settings& settings);

/// Pins the running worker: as CANELE_WORKER_PLACE says, which several ranks may share a core by; or to the nearest
/// core that nobody uses. Where there is none it stays with the program; if that is pinned a warning says so.
void place_worker(Engine& engine);

struct LocalRanks {
  std::uint32_t rank, count;
};
/// The unit (OS index) of a worker by a policy. A pinned program goes by the units of its NUMA node: those that
/// programs are pinned to compute, the others are left. One that is not goes by the number of ranks here. Nothing: the
/// machine cannot be told.
std::optional<int> unit_by(collectives::placement::Policy policy, const ltask::Topology& topology,
                           const LocalRanks& here, const std::function<bool(int)>& is_computed_on);

/// The program runs anywhere, and so may who makes progress beside it: of the ranks of this host each elsewhere.
void spread(Engine& engine, const ltask::Topology& topology);

/// The worker has ended: its core is free for others.
void forget_place(Engine& engine);

/// Pins the running worker to these units. A warning tells if that takes a core that others use. "" or what is wrong.
std::string pin_worker(Engine& engine, ltask::UnitIndex kind, std::span<const int> indexes);

/// "auto: a thread that sleeps until something is pending that nobody makes progress for", "bound, on PU 3".
std::string describe_workers(const Engine& engine);
/// The same of an engine that is started with these settings.
std::string describe_workers(const Settings& settings, const ltask::Topology& topology);

}  // namespace canele::comm::api
