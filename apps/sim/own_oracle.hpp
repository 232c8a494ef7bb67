// SPDX-License-Identifier: BSD-3-Clause
//
// A run of a workload whose ranks check their results themselves, while all kinds of faults happen.
//
// Used by collectives.cpp and one_sided.cpp. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/sim/adversary.hpp"
#include "apps/sim/coverage.hpp"
#include "apps/sim/oracle.hpp"
#include "apps/sim/run.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

/// Runs one Rank for each rank of the world: run(engine), state() and `completed`. make(faults, rank, dice) makes one.
/// check(ranks) is called when the world has come to rest. `what`: the operations, for the outcome. A process that
/// takes the place of a dead rank runs Rank::run_as_successor(world, engine).
template <class Rank, class Make, class Check>
Outcome run_with_own_oracle(const RunOptions& options, World& world, Dice& dice, const std::string& what, Make make,
                            Check check) {
  const Plan no_messages;
  Oracle oracle(world, no_messages);
  FaultPlan faults = options.faults;
  faults.hostile = 0;  // without a checksum, damaged data cannot be told from good data
  Adversary adversary(world, oracle, faults, options.ticks >> dice.under(8));
  world.on_spoiled = [&](int from, int to) { adversary.note_loss(from, to); };
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < world.options().ranks; ++rank)
    ranks.push_back(make(faults, rank, dice.split(100 + static_cast<std::uint64_t>(rank))));
  adversary.begin();
  begin_buggify(options.seed, options.faults.buggify * (dice.under(3) == 0 ? 0 : 0.3), options.faults.memory / 3);
  world.start([&](int rank, canele_engine_t* engine) {
    if (world.life(rank) == 0) return ranks[static_cast<std::size_t>(rank)]->run(engine);
    Rank::run_as_successor(world, engine);
  });
  const bool rest = world.run(options.ticks + options.patience);
  end_buggify();
  Outcome outcome;
  outcome.world = describe(world.options()) + ", " + what;
  outcome.injected = adversary.injected();
  if (rest) {
    check_warnings(world, outcome.injected);
    check(ranks);
  } else if (world.complaints().empty()) {
    world.complain("the world has not come to rest");
    for (int rank = 0; rank < world.options().ranks; ++rank) {
      if (world.is_running(rank) && !world.is_through(rank) && world.life(rank) == 0)
        outcome.wait_graph += ranks[static_cast<std::size_t>(rank)]->state() + "\n";
    }
    outcome.wait_graph += world.wait_graph();
  }
  note_world(world, &outcome);
  world.destroy_killed();
  outcome.good = outcome.complaints.empty();
  for (const auto& rank : ranks) outcome.completed += rank->completed;
  return outcome;
}

}  // namespace canele::sim
