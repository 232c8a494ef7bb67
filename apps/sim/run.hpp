// SPDX-License-Identifier: BSD-3-Clause
//
// One simulated run: a world, a workload, an adversary, and the outcome.
//
// One thread. The seed decides everything that the options leave open: networks, strategy, settings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/sim/adversary.hpp"
#include "apps/sim/cholesky_options.hpp"

namespace canele::sim {

enum class Workload : std::uint8_t {
  random,       ///< everything at random, while all kinds of faults happen.
  flood,        ///< as random, but most messages go to few ranks, which post their receives late.
  startup,      ///< as random, but few messages: ranks come late, leave early, and die before all have started.
  multicast,    ///< as random, with multicasts.
  mixed,        ///< random or multicast, by the seed.
  scale,        ///< thousands of engines, a few partners each.
  cholesky,     ///< the messages of a tile Cholesky.
  shapes,       ///< one message to many, by each shape.
  collectives,  ///< collectives of all kinds, while all kinds of faults happen.
  cores,        ///< collectives on modelled cores; no run of a world: see cores_options.hpp.
  one_sided     ///< one-sided operations of all kinds, while all kinds of faults happen.
};

const char* name_of(Workload workload);
/// Returns whether faults are injected. The other workloads are for measurements.
bool faults_strike(Workload workload);

struct RunOptions {
  Workload workload = Workload::random;
  std::uint64_t seed = 1;
  int ranks = 0;                           ///< 0: 8 to 32, by the seed.
  int partners = 8;                        ///< scale: partners that each rank chooses.
  int messages = 0;                        ///< 0: by the seed.
  std::uint64_t ticks = 20'000'000;        ///< nanoseconds in which faults happen.
  std::uint64_t patience = 2'000'000'000;  ///< nanoseconds after that.
  FaultPlan faults;
  std::vector<std::uint32_t> keep;    ///< the messages of the plan that are sent; empty: all.
  std::vector<std::string> settings;  ///< of all engines, "NAME=value".
  CholeskyOptions cholesky;
  std::size_t trace_events = 0;  ///< number of events kept of each engine
  bool verbose = false;
};

struct Outcome {
  bool good = false;
  std::vector<std::string> complaints;
  std::string wait_graph;  ///< if the run did not come to rest
  std::uint64_t trace_hash = 0, virtual_ns = 0, events = 0, switches = 0, completed = 0;
  std::map<std::string, std::uint64_t> injected;
  std::uint32_t messages = 0;  ///< of the plan.
  std::string world;           ///< what the seed chose.
  std::string trace_json;      ///< the last events of all engines, if requested.
  std::string report;          ///< figures, for the user.
};

/// Returns what the seed chooses for a world, for workloads with faults.
WorldOptions choose_world(const RunOptions& options, Dice& dice);
std::string describe(const WorldOptions& world);
/// Complains about a warning in a run without a fault that costs a connection. Such a warning can only be about an
/// orderly leave.
void check_warnings(World& world, const std::map<std::string, std::uint64_t>& injected);

/// Adds the world's own results at the end of a run: complaints, trace, counts.
void note_world(const World& world, Outcome* outcome);

/// Runs the workload once.
Outcome run(const RunOptions& options);

}  // namespace canele::sim
