// SPDX-License-Identifier: BSD-3-Clause
//
// One run; see run.hpp. Threads: one.
#include "apps/sim/run.hpp"

#include <array>
#include <memory>
#include <utility>

#include "apps/sim/marks.hpp"
#include "apps/sim/scale.hpp"
#include "apps/sim/traffic.hpp"
#include "comm/packet/wire.hpp"

namespace canele::sim {
namespace {

using drivers::sim::Kind;

Network network(Kind kind, bool local, bool remote, Dice& dice, bool with_previous = false) {
  Network made;
  made.options.kind = kind;
  made.options.local = local;
  made.options.remote = remote;
  made.options.model.latency_ns = kind == Kind::memory || kind == Kind::ring ? 100 : dice.between(500, 30'000);
  made.options.model.gap_ns = dice.under(2) == 0 ? 0 : dice.between(10, 1000);
  made.options.model.bandwidth = static_cast<double>(dice.between(1, 25));
  made.options.window = dice.between(32, 512) * 1024;
  made.options.max_packet = std::size_t{1024} << dice.under(made.options.kind == Kind::stream ? 10 : 6);
  made.options.may_duplicate = with_previous;
  made.with_previous = with_previous;
  return made;
}

/// Memory within a node where there are several ranks on it; one or two rails between all.
std::vector<Network> networks(Dice& dice, int ranks_per_node, bool two_rails) {
  std::vector<Network> all;
  if (ranks_per_node > 1) all.push_back(network(dice.under(2) == 0 ? Kind::memory : Kind::ring, true, false, dice));
  constexpr std::array<Kind, 3> kinds = {Kind::stream, Kind::rma, Kind::plain};
  all.push_back(network(kinds[dice.under(kinds.size())], true, true, dice));
  if (two_rails) {
    all.push_back(network(kinds[dice.under(kinds.size())], true, true, dice, true));
    all[all.size() - 2].options.may_duplicate = true;
  }
  return all;
}

/// Often there is hardly any memory for messages that nobody has asked for. By dice of its own: the settings do not
/// change what the rest of the seed means.
void limit_memory(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(8);
  if (dice.under(2) == 0) return;
  const std::uint64_t least = static_cast<std::uint64_t>(world->ranks) * comm::wire::first_credit;
  world->settings.emplace_back("CANELE_UNEXPECTED_MEMORY=" + std::to_string(least + dice.under(3) * dice.under(least)));
  if (dice.under(2) == 0) world->settings.emplace_back("CANELE_UNEXPECTED_PER_PEER=" + std::to_string(least / 8));
}

WorldOptions choose_world(const RunOptions& options, Dice& dice) {
  WorldOptions world;
  world.seed = options.seed;
  world.verbose = options.verbose;
  const auto ranks = static_cast<int>(dice.between(8, 32));
  world.ranks = options.ranks != 0 ? options.ranks : ranks;
  constexpr std::array<int, 4> nodes = {1, 2, 4, 8};
  world.ranks_per_node = nodes[dice.under(nodes.size())];
  world.networks = networks(dice, world.ranks_per_node, options.faults.rails > 0 && dice.under(4) != 0);
  constexpr std::array<const char*, 3> strategies = {"aggregate", "fifo", "priority"};
  world.strategy = strategies[dice.under(strategies.size())];
  world.worker = dice.under(3) != 0;
  // Without a timer that saves the day a wake-up that was lost is a hang.
  if (options.faults.starving > 0 && dice.under(2) == 0) world.timer_factor = 100;
  world.settings = options.settings;
  if (options.verbose) world.settings.emplace_back("CANELE_VERBOSE=3");
  world.settings.emplace_back("CANELE_SPIN=" + std::to_string(dice.under(2000)));
  limit_memory(options.seed, &world);
  return world;
}

/// A byte that was flipped may mean anything: those two are not judged any more, and soon lose each other.
void quarantine(World& world, Oracle& oracle, int from, int to) {
  oracle.distrust(from, to);
  world.timeline.after(world.dice.under(1'000'000), [&world, from, to] {
    for (const auto& fabric : world.fabrics()) fabric->cut(from, to);
  });
}

std::string describe(const WorldOptions& world) {
  std::string text = std::to_string(world.ranks) + " ranks, " + std::to_string(world.ranks_per_node) + " per node, " +
                     world.strategy + (world.worker ? ", worker" : ", no worker") + ", networks";
  for (const Network& one : world.networks) {
    text += std::string(one.with_previous ? "+" : " ") + name_of(one.options.kind);
  }
  return text;
}

Outcome run_traffic(const RunOptions& options) {
  // Split, not scaled: the states of a scaled one would be a step apart for neighbours, who would then share their
  // plans.
  Dice dice = Dice(options.seed).split(7);
  World world(choose_world(options, dice));
  PlanOptions planned;
  planned.ranks = world.options().ranks;
  const auto messages = static_cast<int>(dice.between(50, 1500));
  planned.messages = options.messages != 0 ? options.messages : messages;
  planned.flood = dice.under(6) == 0;
  const Plan whole = make_plan(planned, dice.split(2));
  const Plan plan = options.keep.empty() ? whole : only(whole, options.keep);
  Oracle oracle(world, plan);
  const std::uint64_t fault_ns = options.ticks >> dice.under(8);  // short runs must be struck, too
  Adversary adversary(world, oracle, options.faults, fault_ns);
  std::vector<std::unique_ptr<TrafficRank>> ranks;
  TrafficOptions traffic;
  traffic.window = static_cast<int>(dice.between(1, 16));
  for (int rank = 0; rank < world.options().ranks; ++rank) {
    ranks.push_back(std::make_unique<TrafficRank>(world, plan, oracle, rank,
                                                  dice.split(100 + static_cast<std::uint64_t>(rank)), traffic));
  }
  world.on_damage = [&](int from, int to) { quarantine(world, oracle, from, to); };
  adversary.begin();
  begin_buggify(options.seed, options.faults.buggify * (dice.under(3) == 0 ? 0 : 0.3));
  world.start([&](int rank, canele_engine_t* engine) { ranks[static_cast<std::size_t>(rank)]->run(engine); });
  const bool rest = world.run(options.ticks + options.patience);
  end_buggify();
  Outcome outcome;
  outcome.world = describe(world.options()) + ", " + std::to_string(plan.messages.size()) + " messages";
  outcome.messages = static_cast<std::uint32_t>(plan.messages.size());
  if (rest) {
    oracle.final_check();
  } else if (world.complaints().empty()) {
    world.complain("the world has not come to rest");
    for (const auto& rank : ranks) {
      if (!world.is_dead(static_cast<int>(&rank - ranks.data())) &&
          !world.is_through(static_cast<int>(&rank - ranks.data())))
        outcome.wait_graph += rank->state() + "\n";
    }
    outcome.wait_graph += world.wait_graph();
  }
  note_world(world, &outcome);
  outcome.good = outcome.complaints.empty();
  outcome.completed = oracle.completed;
  outcome.injected = adversary.injected();
  return outcome;
}

}  // namespace

void note_world(const World& world, Outcome* outcome) {
  outcome->complaints = world.complaints();
  outcome->trace_hash = world.trace_hash();
  outcome->virtual_ns = world.timeline.now();
  outcome->events = world.timeline.steps();
  outcome->switches = world.scheduler.switches();
}

Outcome run(const RunOptions& options) {
  switch (options.workload) {
    case Workload::scale:
      return run_scale(options);
    case Workload::random:
      break;
  }
  return run_traffic(options);
}

}  // namespace canele::sim
