// SPDX-License-Identifier: BSD-3-Clause
//
// Placement of the bound worker.
//
// The register of cores is used under Engine::cores_mutex. A process that is pinned to one unit needs another unit for
// its worker. A process that is pinned to several units may have left one of them free, which only that process knows.
#include "comm/api/worker_place.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace canele::comm::api {
namespace {

using ltask::CoreRegister;
using ltask::Topology;
namespace placement = collectives::placement;

constexpr std::string_view remedy =
    ": they take turns, and both are slow. Give each rank one core more than it computes on, or set CANELE_WORKER=auto";

bool wants_worker(const Settings& settings) { return settings.text(Setting::worker).starts_with("bound"); }

std::unique_ptr<CoreRegister> open_register(const Topology& topology, std::string* why) {
  std::unique_ptr<CoreRegister> cores = CoreRegister::open("", why);
  if (cores != nullptr && topology.is_pinned()) cores->compute_on(topology.own_units());
  return cores;
}

/// Returns the register of cores, opened at first use. nullptr: which cores other processes use is unknown. Called
/// under cores_mutex.
CoreRegister* cores_of(Engine& engine, const Topology& topology) {
  std::string why;
  if (engine.placement.cores == nullptr) engine.placement.cores = open_register(topology, &why);
  if (engine.placement.cores == nullptr)
    engine.log(LogLevel::info, "the cores that other processes use are unknown: " + why);
  return engine.placement.cores.get();
}

std::string units_text(std::span<const int> units) {
  std::string text = units.size() == 1 ? "PU " : "PUs ";
  for (std::size_t i = 0; i < units.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(units[i]);
  return text;
}

void stay_with_the_program(Engine& engine, const Topology& topology) {
  const LogLevel level = topology.own_units().size() == 1 ? LogLevel::warning : LogLevel::info;
  engine.log(level, "no core of this host is free for the worker, so it shares PUs " + topology.allowed_text() +
                        " with the program" + std::string(remedy));
}

/// Records that the worker now runs on this unit. Called under cores_mutex.
void note_worker_unit(Engine& engine, const Topology& topology, int unit) {
  const std::vector<int> own = topology.own_units();
  const CoreRegister* const cores = topology.is_pinned() ? cores_of(engine, topology) : nullptr;
  engine.progress.worker.keep_among_workers(cores != nullptr && !cores->is_computed_on(unit) &&
                                            std::count(own.begin(), own.end(), unit) == 0);
}

/// Returns the problem of the place that the worker was pinned to; "" if no problem is known.
std::string overlap(Engine& engine, const Topology& topology, const std::vector<int>& units) {
  const std::vector<int> own = topology.own_units();
  const bool takes_all = std::all_of(
      own.begin(), own.end(), [&](int one) { return std::find(units.begin(), units.end(), one) != units.end(); });
  if (takes_all) return "the worker is pinned to " + units_text(units) + ", which leaves no unit to the program";
  const std::lock_guard guard(engine.placement.mutex);
  CoreRegister* const cores = cores_of(engine, topology);
  if (cores == nullptr || units.size() != 1) return "";
  const bool taken = cores->take(units[0]);
  note_worker_unit(engine, topology, units[0]);
  if (taken) return "";
  return "the worker is pinned to " + units_text(units) +
         ", which another process of this host uses for its worker, or is pinned to";
}

/// Returns the policy of CANELE_WORKER_PLACE; nothing for auto.
std::optional<placement::Policy> policy_of(const Settings& settings) {
  using placement::Policy;
  for (const Policy one : {Policy::bind, Policy::numa, Policy::odd_even}) {
    if (placement::name_of(one) == settings.text(Setting::worker_place)) return one;
  }
  return std::nullopt;
}

/// Returns the units of the smallest NUMA node that contains this one.
std::vector<int> node_of(const Topology& topology, int unit) {
  std::vector<int> units;
  for (const Topology::Object& object : topology.objects()) {  // larger objects come first
    const bool has_it = std::count(object.units.begin(), object.units.end(), unit) != 0;
    if (has_it && (object.kind == Topology::Kind::machine || object.kind == Topology::Kind::numa_node))
      units = object.units;
  }
  return units;
}

void place_by(placement::Policy policy, Engine& engine, const Topology& topology) {
  const CoreRegister* const cores = topology.is_pinned() ? cores_of(engine, topology) : nullptr;
  const LocalRanks here{static_cast<std::uint32_t>(engine.lifecycle.bootstrap->local_rank()),
                        static_cast<std::uint32_t>(engine.lifecycle.bootstrap->local_size())};
  const std::optional<int> unit =
      unit_by(policy, topology, here, [cores](int one) { return cores != nullptr && cores->is_computed_on(one); });
  if (!unit) return;
  const std::string problem = topology.bind(engine.progress.worker.native_id(), ltask::UnitIndex::os, {&*unit, 1});
  if (!problem.empty()) return engine.log(LogLevel::warning, "the worker cannot be placed: " + problem);
  note_worker_unit(engine, topology, *unit);
}

std::string on_demand_text(ltask::OnDemandProgress::Kind kind, const Settings& settings) {
  switch (kind) {
    case ltask::OnDemandProgress::Kind::on_demand:
      return "auto: an on-demand progress thread";
    case ltask::OnDemandProgress::Kind::idle_cores:
      return "idle: an on-demand progress thread, on idle cores only";
    case ltask::OnDemandProgress::Kind::timed:
      return "timer: a progress call every " + settings.text(Setting::worker_interval) + " us";
    case ltask::OnDemandProgress::Kind::off:
      break;
  }
  return "none: progress inside wait, test and canele_progress";
}

}  // namespace

std::unique_ptr<CoreRegister> register_cores(const Settings& settings) {
  if (!wants_worker(settings)) return nullptr;
  std::string why;
  return open_register(Topology(), &why);
}

void set_rank_affinity(Engine& engine, const Topology& topology) {
  const std::vector<int> units = topology.own_units();
  if (topology.is_pinned() || units.empty() || engine.lifecycle.bootstrap->local_size() < 2) return;
  const int unit = units[static_cast<std::size_t>(engine.lifecycle.bootstrap->local_rank()) % units.size()];
  engine.progress.worker.prefer(unit);
  engine.progress.on_demand.prefer(unit);
}

std::optional<int> unit_by(placement::Policy policy, const Topology& topology, const LocalRanks& here,
                           const std::function<bool(int)>& is_computed_on) {
  const std::vector<int> own = topology.own_units();
  if (own.empty()) return std::nullopt;
  if (!topology.is_pinned()) {
    const auto cores = static_cast<std::uint32_t>(own.size()), ranks = std::min(here.count, cores);
    return own[placement::core_of(policy, cores, ranks, here.rank % ranks)];
  }
  std::vector<int> computing, left;
  const std::vector<int> node = node_of(topology, own.front());
  for (const int unit : node) {
    const bool ours = std::count(own.begin(), own.end(), unit) != 0;
    (ours || is_computed_on(unit) ? computing : left).push_back(unit);
  }
  if (policy == placement::Policy::bind || left.empty()) return own.front();
  const auto place =
      static_cast<std::uint32_t>(std::find(computing.begin(), computing.end(), own.front()) - computing.begin());
  // For odd-even, neighbours are ranks. For numa, they are units.
  const bool by_rank = policy == placement::Policy::odd_even;
  const std::uint32_t rank = by_rank ? place / static_cast<std::uint32_t>(own.size()) : place;
  return left[placement::left_for(policy, static_cast<std::uint32_t>(node.size()),
                                  static_cast<std::uint32_t>(computing.size()), rank)];
}

void place_worker(Engine& engine) {
  const Topology topology;
  const std::lock_guard guard(engine.placement.mutex);
  if (const auto policy = policy_of(*engine.lifecycle.settings)) return place_by(*policy, engine, topology);
  if (!topology.is_pinned()) return set_rank_affinity(engine, topology);
  if (cores_of(engine, topology) == nullptr) return;
  if (const std::optional<int> lost = engine.placement.cores->lost_to_a_worker()) {
    engine.log(LogLevel::warning, "this program is pinned to PU " + std::to_string(*lost) +
                                      ", where the worker of another program runs" + std::string(remedy));
  }
  std::optional<int> unit;
  while ((unit = free_unit_nearby(topology, *engine.placement.cores)) && !engine.placement.cores->take(*unit)) {
  }
  if (!unit) return stay_with_the_program(engine, topology);
  const std::string problem = topology.bind(engine.progress.worker.native_id(), ltask::UnitIndex::os, {&*unit, 1});
  if (problem.empty()) return note_worker_unit(engine, topology, *unit);
  engine.placement.cores->give_back();
  engine.log(LogLevel::warning, "the worker stays on the cores of the program: " + problem);
}

void forget_place(Engine& engine) {
  const std::lock_guard guard(engine.placement.mutex);
  engine.progress.worker.keep_among_workers(false);
  if (engine.placement.cores != nullptr) engine.placement.cores->give_back();
}

std::string pin_worker(Engine& engine, ltask::UnitIndex kind, std::span<const int> indexes) {
  const Topology topology;
  std::string problem = topology.bind(engine.progress.worker.native_id(), kind, indexes);
  if (!problem.empty()) return problem;
  std::vector<int> units;
  for (const int index : indexes) units.push_back(topology.os_index(kind, index).value_or(index));
  engine.progress.worker.keep_among_workers(false);
  const std::string found = overlap(engine, topology, units);
  if (!found.empty()) engine.log(LogLevel::warning, found + std::string(remedy));
  return "";
}

std::string describe_workers(const Engine& engine) {
  const ltask::OnDemandProgress::Kind on_demand = engine.progress.on_demand.kind();
  if (!engine.progress.worker.active()) return on_demand_text(on_demand, *engine.lifecycle.settings);
  const std::string bound = "bound: on PU " + Topology().place_of(engine.progress.worker.native_id()) +
                            (engine.progress.worker.among_workers() ? ", where no program computes" : "");
  return on_demand == ltask::OnDemandProgress::Kind::off
             ? bound
             : bound + "; " + on_demand_text(on_demand, *engine.lifecycle.settings);
}

std::string describe_workers(const Settings& settings, const Topology& topology) {
  using Kind = ltask::OnDemandProgress::Kind;
  const std::string& kinds = settings.text(Setting::worker);
  const Kind on_demand = kinds == "auto"           ? Kind::on_demand
                         : kinds == "timer"        ? Kind::timed
                         : kinds.ends_with("idle") ? Kind::idle_cores
                                                   : Kind::off;
  if (!wants_worker(settings)) return on_demand_text(on_demand, settings);
  const std::string& core = settings.text(Setting::worker_core);
  std::string why, place = "any of PUs " + topology.allowed_text();
  if (core != "auto") {
    place = "PU " + core + " (CANELE_WORKER_CORE)";
  } else if (const auto policy = policy_of(settings)) {
    place = "a PU by CANELE_WORKER_PLACE=" + std::string(placement::name_of(*policy));
  } else if (const auto cores = CoreRegister::open("", &why); cores != nullptr) {
    const std::optional<int> unit = free_unit_nearby(topology, *cores);
    if (unit) place = "PU " + std::to_string(*unit) + ", the nearest to which none of your processes is pinned";
  }
  return "bound: on " + place + (on_demand == Kind::off ? "" : "; " + on_demand_text(on_demand, settings));
}

}  // namespace canele::comm::api
