// SPDX-License-Identifier: BSD-3-Clause
//
// The modelled cluster.
#include "apps/sim/cluster.hpp"

#include <cmath>

namespace canele::sim {

WorldOptions cluster_of(const RunOptions& options, int ranks) {
  const CholeskyOptions& chosen = options.cholesky;
  WorldOptions world;
  world.seed = options.seed;
  world.ranks = ranks;
  world.strategy = chosen.strategy;
  world.verbose = options.verbose;
  world.trace_events = options.trace_events;
  world.settings = {"CANELE_SPIN=0"};  // spinning takes most of the simulator's own time; a wake-up takes 2.5 us
  world.settings.insert(world.settings.end(), options.settings.begin(), options.settings.end());
  if (options.verbose) world.settings.emplace_back("CANELE_VERBOSE=3");
  Network card;
  card.options.kind = drivers::sim::Kind::rma;
  card.options.model = {static_cast<std::uint64_t>(std::lround(chosen.latency_us * 1000)),
                        static_cast<std::uint64_t>(std::lround(chosen.gap_us * 1000)), chosen.gigabytes};
  card.options.measured = true;
  world.networks = {card};
  return world;
}

}  // namespace canele::sim
