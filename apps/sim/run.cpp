// SPDX-License-Identifier: BSD-3-Clause
//
// One run. One thread.
#include "apps/sim/run.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apps/sim/cholesky.hpp"
#include "apps/sim/collectives.hpp"
#include "apps/sim/coverage.hpp"
#include "apps/sim/one_sided.hpp"
#include "apps/sim/scale.hpp"
#include "apps/sim/shapes.hpp"
#include "apps/sim/traffic.hpp"
#include "comm/wire/wire.hpp"

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
  made.options.in_flight_limit = dice.between(32, 512) * 1024;
  made.options.max_packet = std::size_t{1024} << dice.under(made.options.kind == Kind::stream ? 10 : 6);
  made.options.may_duplicate = with_previous;
  made.with_previous = with_previous;
  return made;
}

/// Returns a memory network within nodes that have several ranks, and one or two rails between all ranks.
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

/// Often limits the memory for unexpected messages to almost nothing. Uses dice of its own: the settings do not change
/// what the rest of the seed means.
void limit_memory(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(8);
  if (dice.under(2) == 0) return;
  const std::uint64_t least = static_cast<std::uint64_t>(world->ranks) * comm::wire::first_credit;
  world->settings.emplace_back("CANELE_UNEXPECTED_MEMORY=" + std::to_string(least + dice.under(3) * dice.under(least)));
  if (dice.under(2) == 0)
    world->settings.emplace_back("CANELE_EXPERT_UNEXPECTED_PER_PEER=" + std::to_string(least / 8));
}

/// Assigns levels of trees to the waiting threads. Uses dice of its own, as above.
void split_trees(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(15);
  if (dice.under(2) == 0) world->settings.emplace_back("CANELE_EXPERT_SPLIT_TREE=" + std::to_string(dice.under(4)));
}

/// Lets devices copy short messages in fragments, too. Uses dice of its own, as above.
void cut_fragments(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(17);
  world->settings.emplace_back("CANELE_EXPERT_GPU_FRAGMENT=" + std::to_string(1024 << dice.under(6)));
}

/// Makes packets carry checksums, and damages some of them. Uses dice of its own, as above.
void check_sums(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(11);
  if (dice.under(5) != 0) return;
  world->checksums = true;
  world->settings.emplace_back("CANELE_CHECKSUM=packets");
  for (Network& one : world->networks) {
    one.options.max_packet = std::max<std::size_t>(one.options.max_packet, 2048);
    one.options.may_duplicate = false;  // bulk data goes in packets without sequence numbers
  }
}

/// Chooses which threads make progress beside the worker, or without one. Uses dice of its own, as above.
void choose_on_demand_progress(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(13);
  if (dice.under(2) == 0) return;
  constexpr std::array<unsigned, 3> kinds = {CANELE_WORKER_AUTO, CANELE_WORKER_IDLE, CANELE_WORKER_TIMER};
  world->on_demand_progress = world->worker ? unsigned{CANELE_WORKER_IDLE} : kinds[dice.under(kinds.size())];
}

/// Shuffles ready tasks, because the engine must not rely on their order. Uses dice of its own, as above.
void shuffle_tasks(std::uint64_t seed, WorldOptions* world) {
  Dice dice = Dice(seed).split(14);
  if (dice.under(4) == 0) world->shuffled_tasks = 1 + dice.under(1'000'000);
}

/// Makes ranks start late, and their launcher slow.
void make_start_hard(WorldOptions& world, Dice& dice) {
  world.latest_start_ns = 1 + dice.under(dice.under(2) == 0 ? 50'000 : 5'000'000);
  if (dice.under(2) == 0) world.slowest_answer_ns = 1 + dice.under(10'000'000);
  world.deaths_break_fences = dice.under(4) == 0;
}

const char* name_of_on_demand_progress(unsigned kind) {
  switch (kind) {
    case CANELE_WORKER_AUTO:
      return ", on-demand progress";
    case CANELE_WORKER_IDLE:
      return ", progress on idle cores";
    case CANELE_WORKER_TIMER:
      return ", progress by a timer";
    default:
      return "";
  }
}

}  // namespace

WorldOptions choose_world(const RunOptions& options, Dice& dice) {
  WorldOptions world;
  world.seed = options.seed;
  world.verbose = options.verbose;
  world.trace_events = options.trace_events;
  const auto ranks = static_cast<int>(dice.between(8, 32));
  world.ranks = options.ranks != 0 ? options.ranks : ranks;
  constexpr std::array<int, 4> nodes = {1, 2, 4, 8};
  world.ranks_per_node = nodes[dice.under(nodes.size())];
  world.networks = networks(dice, world.ranks_per_node, options.faults.rails > 0 && dice.under(4) != 0);
  constexpr std::array<const char*, 3> strategies = {"aggregate", "fifo", "priority"};
  world.strategy = strategies[dice.under(strategies.size())];
  world.worker = dice.under(3) != 0;
  // Without a timer that masks the problem, a lost wake-up is a hang.
  if (options.faults.starving > 0 && dice.under(2) == 0) world.timer_factor = 100;
  world.settings = options.settings;
  if (options.verbose) world.settings.emplace_back("CANELE_VERBOSE=3");
  world.settings.emplace_back("CANELE_SPIN=" + std::to_string(dice.under(2000)));
  limit_memory(options.seed, &world);
  choose_on_demand_progress(options.seed, &world);
  shuffle_tasks(options.seed, &world);
  if (options.workload == Workload::collectives) split_trees(options.seed, &world);
  cut_fragments(options.seed, &world);
  if (options.faults.payload > 0) check_sums(options.seed, &world);
  if (options.workload == Workload::startup) make_start_hard(world, dice);
  return world;
}

std::string describe(const WorldOptions& world) {
  std::string text = std::to_string(world.ranks) + " ranks, " + std::to_string(world.ranks_per_node) + " per node, " +
                     world.strategy + (world.worker ? ", worker" : ", no worker") +
                     name_of_on_demand_progress(world.on_demand_progress) + (world.checksums ? ", checksums" : "") +
                     ", networks";
  for (const Network& one : world.networks) {
    text += std::string(one.with_previous ? "+" : " ") + name_of(one.options.kind);
  }
  return text;
}

void check_warnings(World& world, const std::map<std::string, std::uint64_t>& injected) {
  using drivers::sim::Fault;
  constexpr std::array<Fault, 4> costly = {Fault::rail_loss, Fault::truncated, Fault::corrupt, Fault::payload};
  const auto struck = [&](Fault fault) { return injected.contains(drivers::sim::name_of(fault)); };
  if (world.deaths() > 0 || std::any_of(costly.begin(), costly.end(), struck)) return;
  if (!world.first_warning().empty()) world.complain(world.first_warning() + ", and nothing was lost");
}

namespace {

PlanOptions choose_plan(const RunOptions& options, int ranks, Dice& dice) {
  PlanOptions plan;
  plan.ranks = ranks;
  if (options.workload == Workload::flood) {
    plan.messages = static_cast<int>(dice.between(200, 2500));
    plan.sinks = static_cast<int>(dice.between(1, 3));
    plan.both_ways = dice.under(2) == 0;
    plan.per_group = 8 << dice.under(6);
    plan.longest = dice.under(3) == 0 ? 400'000 : 20'000;
  } else if (options.workload == Workload::startup) {
    plan.messages = static_cast<int>(dice.under(static_cast<std::uint64_t>(3 * ranks)));
    plan.longest = dice.under(2) == 0 ? 400'000 : 2'000;
  } else {
    plan.messages = static_cast<int>(dice.between(50, 1500));
    plan.flood = dice.under(6) == 0;
  }
  if (options.workload == Workload::multicast) plan.multicasts = plan.messages / 20;
  if (options.messages != 0) plan.messages = options.messages;
  return plan;
}

/// Returns what one rank does. `inflight_limit` applies to all ranks.
TrafficOptions choose_traffic(const RunOptions& options, int inflight_limit, Dice dice) {
  TrafficOptions traffic;
  traffic.inflight_limit = inflight_limit;
  if (options.workload == Workload::flood) {
    constexpr int all = 1'000'000;
    traffic.sends_at_once = dice.under(4) == 0 ? static_cast<int>(dice.between(1, 64)) : all;
    traffic.late_by_ns = dice.under(4) == 0 ? 0 : dice.under(3'000'000);
  } else if (options.workload == Workload::startup) {
    constexpr std::array<std::uint64_t, 3> begins = {0, 100'000, 5'000'000};
    traffic.begins_after_ns = dice.under(begins[dice.under(begins.size())]);
  }
  return traffic;
}

/// Stops checking two ranks after a flipped byte, which may mean anything, and soon cuts their connection.
void quarantine(World& world, Oracle& oracle, int from, int to) {
  oracle.distrust(from, to);
  world.timeline.after(world.dice.under(1'000'000), [&world, from, to] {
    for (const auto& fabric : world.fabrics()) fabric->cut(from, to);
  });
}

using TrafficRanks = std::vector<std::unique_ptr<TrafficRank>>;

/// Returns the ranks that have not ended, and what each waits for.
std::string wait_graph(const World& world, const TrafficRanks& ranks) {
  std::string text;
  for (int rank = 0; rank < world.options().ranks; ++rank) {
    if (!world.is_running(rank) || world.is_through(rank)) continue;
    text += ranks[static_cast<std::size_t>(rank)]->state() + "\n";
  }
  return text + world.wait_graph();
}

/// Returns memory of devices, for some worlds. Uses dice of its own, as above.
std::unique_ptr<DeviceMemories> choose_devices(std::uint64_t seed) {
  Dice dice = Dice(seed).split(16);
  return dice.under(4) == 0 ? std::make_unique<DeviceMemories>(dice.next()) : nullptr;
}

Outcome run_traffic(const RunOptions& options) {
  // split(7), not scaled seeds: the states of neighbouring scaled seeds would be one step apart, and these seeds would
  // share plans.
  Dice dice = Dice(options.seed).split(7);
  const std::unique_ptr<DeviceMemories> devices = choose_devices(options.seed);  // engines use it until they end
  World world(choose_world(options, dice));
  world.devices = devices.get();
  if (devices != nullptr) devices->complain = [&world](const std::string& what) { world.complain(what); };
  const PlanOptions planned = choose_plan(options, world.options().ranks, dice);
  Plan whole = make_plan(planned, dice.split(2));
  if (planned.multicasts > 0) add_multicasts(planned, Dice(options.seed).split(12), &whole);
  const Plan plan = options.keep.empty() ? whole : only(whole, options.keep);
  Oracle oracle(world, plan);
  const std::uint64_t fault_ns = options.ticks >> dice.under(8);  // short runs must be hit by faults, too
  Adversary adversary(world, oracle, options.faults, fault_ns);
  TrafficRanks ranks;
  const auto inflight_limit = static_cast<int>(dice.between(1, 16));
  Dice habits = Dice(options.seed).split(9);
  const auto make_rank = [&](int rank) {
    const auto own = static_cast<std::uint64_t>(rank);
    const TrafficOptions traffic = choose_traffic(options, inflight_limit, habits.split(own));
    return std::make_unique<TrafficRank>(world, plan, oracle, rank, dice.split(100 + own), traffic);
  };
  for (int rank = 0; rank < world.options().ranks; ++rank) ranks.push_back(make_rank(rank));
  world.on_damage = [&](int from, int to) { quarantine(world, oracle, from, to); };
  world.on_spoiled = [&](int from, int to) {
    oracle.forgive(from, to);
    adversary.note_loss(from, to);
  };
  adversary.begin();
  oracle.lacks_memory = options.faults.memory > 0;
  const double share = options.faults.buggify * (dice.under(3) == 0 ? 0 : 0.3);
  begin_buggify(options.seed, share, options.faults.memory / 3);
  std::vector<std::unique_ptr<TrafficRank>> killed;  // the requests of their engines exist until the end
  world.start([&](int rank, canele_engine_t* engine) {
    auto& own = ranks[static_cast<std::size_t>(rank)];
    if (world.life(rank) > 0) killed.push_back(std::exchange(own, make_rank(rank)));
    if (devices != nullptr) devices->use(rank, engine);
    own->run(engine);
  });
  const bool rest = world.run(options.ticks + options.patience);
  end_buggify();
  Outcome outcome;
  outcome.world = describe(world.options()) + ", " + std::to_string(plan.messages.size()) + " messages" +
                  (devices != nullptr ? ", devices" : "");
  outcome.messages = static_cast<std::uint32_t>(plan.messages.size());
  outcome.injected = adversary.injected();
  if (rest) {
    oracle.final_check();
    check_warnings(world, outcome.injected);
  } else if (world.complaints().empty()) {
    world.complain("the world has not come to rest");
    outcome.wait_graph = wait_graph(world, ranks);
  }
  note_world(world, &outcome);
  world.destroy_killed();
  outcome.good = outcome.complaints.empty();
  outcome.completed = oracle.completed;
  for (const auto& rank : ranks) outcome.injected["unexpected"] += rank->unexpected();
  return outcome;
}

}  // namespace

const char* name_of(Workload workload) {
  constexpr std::array<const char*, 11> names = {"random",   "flood",  "startup",     "multicast", "mixed",    "scale",
                                                 "cholesky", "shapes", "collectives", "cores",     "one-sided"};
  return names[static_cast<std::size_t>(workload)];
}

bool faults_strike(Workload workload) {
  return workload != Workload::scale && workload != Workload::cholesky && workload != Workload::shapes;
}

void note_world(const World& world, Outcome* outcome) {
  outcome->complaints = world.complaints();
  outcome->trace_hash = world.trace_hash();
  outcome->virtual_ns = world.timeline.now();
  outcome->events = world.timeline.steps();
  outcome->switches = world.scheduler.switches();
  if (world.options().trace_events != 0) outcome->trace_json = world.trace_json();
}

Outcome run(const RunOptions& given) {
  RunOptions options = given;
  if (given.workload == Workload::mixed) {
    options.workload = given.seed % 2 == 0 ? Workload::random : Workload::multicast;
  }
  if (options.workload == Workload::scale) return run_scale(options);
  if (options.workload == Workload::cholesky) return run_cholesky(options);
  if (options.workload == Workload::shapes) return run_shapes(options);
  if (options.workload == Workload::collectives) return run_collectives(options);
  if (options.workload == Workload::one_sided) return run_one_sided(options);
  return run_traffic(options);
}

}  // namespace canele::sim
