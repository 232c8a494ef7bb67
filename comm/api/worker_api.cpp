// SPDX-License-Identifier: BSD-3-Clause
//
// Workers of the C ABI: which background threads make progress beside the program's own calls.
//
// Any thread may call these functions. None may be called in a callback: a callback on a worker would wait for itself.
// The bound worker and the on-demand thread are separate threads. The worker takes over all polling; the on-demand
// thread polls for pending work that no other thread polls for. At most one kind of on-demand thread runs.
#include <array>
#include <cstdlib>

#include "comm/api/api.hpp"
#include "comm/api/worker_place.hpp"

namespace canele::comm::api {
namespace {

using Kind = ltask::OnDemandProgress::Kind;

/// The one kind of on-demand thread among `kinds`, with its pace. Kind::off if there is none.
struct OnDemandChoice {
  Kind kind = Kind::off;
  ltask::OnDemandProgress::Pace pace;
};

OnDemandChoice on_demand_choice(const Engine& engine, unsigned kinds) {
  if ((kinds & CANELE_WORKER_AUTO) != 0) {
    ltask::OnDemandProgress::Pace pace;
    // Each poll takes the core from a rank, whose time slice is about as long.
    if (engine.oversubscribed) pace.longest_ns *= 4;
    return {Kind::on_demand, pace};
  }
  if ((kinds & CANELE_WORKER_TIMER) != 0) {
    const std::uint64_t interval = engine.lifecycle.settings->number(Setting::worker_interval) * 1000;
    return {Kind::timed, {interval, interval, 0}};
  }
  if ((kinds & CANELE_WORKER_IDLE) == 0) return {};
  // Beside a worker that may be stuck, the on-demand thread polls often, also for a while after the traffic has ended.
  constexpr ltask::OnDemandProgress::Pace beside_worker = {25'000, 50'000, 40};
  return {Kind::idle_cores, (kinds & CANELE_WORKER_BOUND) != 0 ? beside_worker : ltask::OnDemandProgress::Pace{}};
}

bool are_compatible(unsigned kinds) {
  switch (kinds) {
    case CANELE_WORKER_NONE:
    case CANELE_WORKER_AUTO:
    case CANELE_WORKER_BOUND:
    case CANELE_WORKER_IDLE:
    case CANELE_WORKER_TIMER:
    case CANELE_WORKER_BOUND | CANELE_WORKER_IDLE:
      return true;
    default:
      return false;
  }
}

int start_bound(Engine& engine) {
  engine.enable_lock_bias(false);
  engine.progress.worker.start();
  if (engine.progress.worker.active()) return CANELE_OK;
  engine.enable_lock_bias(true);
  return error(CANELE_ENOMEM, "the system can start no thread for the worker");
}

void stop_bound(Engine& engine) {
  engine.progress.worker.stop();
  forget_place(engine);
  engine.progress.waiters.wake_one(engine.platform);  // from now on one of the waiting threads polls
  engine.enable_lock_bias(true);
}

}  // namespace

int start_workers(Engine& engine) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 6> names = {{
      {"none", CANELE_WORKER_NONE},
      {"auto", CANELE_WORKER_AUTO},
      {"bound", CANELE_WORKER_BOUND},
      {"idle", CANELE_WORKER_IDLE},
      {"timer", CANELE_WORKER_TIMER},
      {"bound+idle", CANELE_WORKER_BOUND | CANELE_WORKER_IDLE},
  }};
  const std::string& wanted = engine.lifecycle.settings->text(Setting::worker);
  for (const auto& [name, kinds] : names) {
    if (name != wanted) continue;
    const int code = canele_worker_use(public_of(engine), kinds);
    const std::string& core = engine.lifecycle.settings->text(Setting::worker_core);
    if (code != CANELE_OK || (kinds & CANELE_WORKER_BOUND) == 0 || core == "auto") return code;
    const int index = std::atoi(core.c_str());
    const int bound = canele_worker_bind(public_of(engine), CANELE_INDEX_LOGICAL, &index, 1);
    return bound == CANELE_OK ? bound : error(bound, "CANELE_WORKER_CORE=" + core + ": " + canele_error_detail());
  }
  return CANELE_OK;
}

}  // namespace canele::comm::api

using namespace canele;
using namespace canele::comm;
using namespace canele::comm::api;

int canele_worker_use(canele_engine_t* engine, unsigned kinds) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_worker_use: engine is NULL");
  if (!are_compatible(kinds)) {
    return error(CANELE_EINVAL,
                 "canele_worker_use: kinds is " + std::to_string(kinds) +
                     "; expected: one of CANELE_WORKER_NONE, AUTO, BOUND, IDLE and TIMER, or BOUND with IDLE");
  }
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_worker_use inside a completion callback");
  if (fork::in_child) return reject_in_child("canele_worker_use");
  Engine& e = engine_of(engine);
  if (e.placement.no_core_for_worker && (kinds & CANELE_WORKER_BOUND) != 0) {
    kinds = CANELE_WORKER_AUTO;
    if (e.placement.on_this_machine) set_rank_affinity(e, ltask::Topology());
  }
  const bool bound = (kinds & CANELE_WORKER_BOUND) != 0;
  if (!bound && e.progress.worker.active()) stop_bound(e);
  if (bound && !e.progress.worker.active()) {
    if (const int code = start_bound(e); code != CANELE_OK) return code;
    if (e.placement.on_this_machine && e.lifecycle.settings->text(Setting::worker_core) == "auto") place_worker(e);
  }
  const OnDemandChoice choice = on_demand_choice(e, kinds);
  if (e.progress.on_demand.start(choice.kind, choice.pace)) return CANELE_OK;
  return error(CANELE_ENOMEM, "the system can start no thread for the worker");
} catch (...) {
  return caught();
}

int canele_worker_bind(canele_engine_t* engine, enum canele_index_kind kind, const int* indexes, int count) try {
  if (engine == nullptr || count < 0 || (count > 0 && indexes == nullptr)) {
    return error(CANELE_EINVAL, "canele_worker_bind: engine and indexes must be given, count must not be negative");
  }
  if (kind != CANELE_INDEX_LOGICAL && kind != CANELE_INDEX_OS) {
    return error(CANELE_EINVAL, "canele_worker_bind: kind is " + std::to_string(static_cast<int>(kind)) +
                                    "; expected: CANELE_INDEX_LOGICAL or CANELE_INDEX_OS");
  }
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_worker_bind inside a completion callback");
  if (fork::in_child) return reject_in_child("canele_worker_bind");
  Engine& e = engine_of(engine);
  if (e.placement.no_core_for_worker) {
    e.log(LogLevel::info, "the worker has no core of its own, so it is not pinned");
    return e.progress.on_demand.kind() != ltask::OnDemandProgress::Kind::off
               ? CANELE_OK
               : canele_worker_use(engine, CANELE_WORKER_BOUND);
  }
  if (const int code = start_bound(e); code != CANELE_OK || count == 0) return code;
  const auto index_kind = kind == CANELE_INDEX_OS ? ltask::UnitIndex::os : ltask::UnitIndex::logical;
  const std::string problem = pin_worker(e, index_kind, {indexes, static_cast<std::size_t>(count)});
  if (!problem.empty()) return error(CANELE_EINVAL, "canele_worker_bind: " + problem);
  e.log(LogLevel::info, "worker pinned to " + std::string(kind == CANELE_INDEX_OS ? "OS" : "logical") + " PU " +
                            std::to_string(indexes[0]));
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_worker_stop(canele_engine_t* engine) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_worker_stop: engine is NULL");
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_worker_stop inside a completion callback");
  return canele_worker_use(engine, CANELE_WORKER_NONE);
} catch (...) {
  return caught();
}

int canele_worker_active(const canele_engine_t* engine) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_worker_active: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_worker_active");
  return engine_of(engine).progress.worker.active() ? 1 : 0;
} catch (...) {
  return caught();
}
