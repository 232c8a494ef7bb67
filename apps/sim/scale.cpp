// SPDX-License-Identifier: BSD-3-Clause
//
// The run and its figures.
//
// The cost of a peer that is known and not used is measured with two jobs of different size that have only started. It
// is the slope between them, because each engine of the larger job knows the additional peers.
#include "apps/sim/scale.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <vector>

#include "apps/sim/exchange.hpp"
#include "apps/sim/process.hpp"
#include "apps/sim/start_barrier.hpp"

namespace canele::sim {
namespace {

using drivers::sim::Kind;

constexpr std::uint64_t scale_patience_ns = 60'000'000'000, calm_ns = 5'000'000;
constexpr std::size_t most_memory = std::size_t{8} << 30;
constexpr double most_per_idle_peer = 128, most_per_used_peer = 32 * 1024;
// A parker per thread that has waited is kept for reuse, and malloc keeps some blocks.
constexpr double most_left_behind_each = 160, most_left_behind_once = 16 * 1024;
constexpr std::size_t states_shown = 20;
constexpr int fewest_ranks = 64;

/// Returns nodes of eight ranks, with memory between them and a network card in each node.
WorldOptions cluster(std::uint64_t seed, int ranks, bool verbose) {
  WorldOptions world;
  world.seed = seed;
  world.ranks = ranks;
  world.ranks_per_node = 8;
  world.verbose = verbose;
  if (verbose) world.settings.emplace_back("CANELE_VERBOSE=3");
  Network memory, card;
  memory.options.kind = Kind::memory;
  memory.options.remote = false;
  memory.options.model = {100, 20, 10.0};
  card.options.kind = Kind::rma;
  card.options.model = {1500, 100, 12.5};
  world.networks = {memory, card};
  return world;
}

/// Returns the heap of all engines.
double heap_of_engines(const MemoryUse& now, const MemoryUse& before) {
  return static_cast<double>(now.heap - now.counted) - static_cast<double>(before.heap - before.counted);
}

struct Phase {
  double wall_s = 0;
  std::uint64_t steps = 0;
};
struct Phases {
  Phase start, exchange, disconnect;
  double wall_s() const { return start.wall_s + exchange.wall_s + disconnect.wall_s; }
  std::uint64_t steps() const { return start.steps + exchange.steps + disconnect.steps; }
};

/// One job, stopped at the points where its memory is read.
class ScaleJob {
 public:
  using Work = std::function<void(int rank, canele_engine_t* engine)>;

  ScaleJob(const RunOptions& options, int ranks) : world(cluster(options.seed, ranks, options.verbose)) {}

  /// Starts the job. Returns true when all engines exist and no rank has sent anything.
  bool start(Work work) {
    world.start([this, work = std::move(work)](int rank, canele_engine_t* engine) {
      started_.pass();
      if (work) work(rank, engine);
      worked_.pass();
    });
    return reach(started_, &phases.start);
  }
  bool work() {
    started_.open();
    if (!reach(worked_, &phases.exchange)) return false;
    const std::uint64_t calm = world.timeline.now() + calm_ns;  // for acknowledgements
    world.run_until([&] { return world.timeline.next() > calm; }, calm);
    return true;
  }
  bool disconnect() {
    started_.open();
    worked_.open();
    return timed(&phases.disconnect, [this] { return world.run(world.timeline.now() + scale_patience_ns); });
  }
  /// Returns the number of peers that the engines have made, summed over the engines.
  std::uint64_t peers() const {
    std::uint64_t sum = 0;
    for (int rank = 0; rank < world.options().ranks; ++rank) sum += world.engine(rank)->active_peers.size();
    return sum;
  }

  World world;
  Phases phases;

 private:
  bool reach(const StartBarrier& barrier, Phase* phase) {
    return timed(phase, [this, &barrier] {
      const int all = world.options().ranks;
      return world.run_until([&] { return barrier.arrived() == all; }, world.timeline.now() + scale_patience_ns);
    });
  }
  template <typename Run>
  bool timed(Phase* phase, Run run) {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t steps = world.timeline.steps();
    const bool good = run();
    phase->wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    phase->steps = world.timeline.steps() - steps;
    if (!good && world.complaints().empty()) world.complain("the world has not come to rest");
    return good;
  }

  StartBarrier started_{world.scheduler}, worked_{world.scheduler};
};

struct ScaleFigures {
  int ranks = 0, fewer_ranks = 0;
  std::size_t messages = 0, bytes = 0;
  MemoryUse before, started, worked;  ///< before: the world exists, but not its engines
  double fewer_heap_each = 0;         ///< of an engine of the smaller job
  std::size_t stacks = 0;
  std::uint64_t peers = 0;
  Phases phases;
  double left_behind = 0;  ///< by each engine

  double most_left_behind() const { return most_left_behind_each + most_left_behind_once / ranks; }
  double heap_each() const { return heap_of_engines(started, before) / ranks; }
  double per_idle_peer() const { return (heap_each() - fewer_heap_each) / (ranks - fewer_ranks); }
  double per_used_peer() const { return heap_of_engines(worked, started) / static_cast<double>(peers); }
  double simulated_per_used_peer() const {
    return (static_cast<double>(worked.counted) - static_cast<double>(started.counted)) / static_cast<double>(peers);
  }
};

std::string report(const ScaleFigures& f) {
  constexpr double mib = 1 << 20, kib = 1 << 10;
  const double ranks = f.ranks, wall_s = f.phases.wall_s();
  const double resident = static_cast<double>(f.started.resident) - static_cast<double>(f.before.resident);
  std::string text = fmt::format("scale: {} engines, {:.1f} peers each, {} messages, {:.2f} GB\n", f.ranks,
                                 static_cast<double>(f.peers) / ranks, f.messages, static_cast<double>(f.bytes) / 1e9);
  text += fmt::format("  wall time       {:.1f} s: start {:.1f}, exchange {:.1f}, leave {:.1f}\n", wall_s,
                      f.phases.start.wall_s, f.phases.exchange.wall_s, f.phases.disconnect.wall_s);
  text += fmt::format("  events          {}: {:.0f} a second (a thread continues, a frame arrives, a timer expires)\n",
                      f.phases.steps(), static_cast<double>(f.phases.steps()) / wall_s);
  text += fmt::format("  memory in all   {:.0f} MiB at most, {:.0f} allowed\n",
                      static_cast<double>(most_resident()) / mib, static_cast<double>(most_memory) / mib);
  text += fmt::format("  engine          {:.1f} KiB when started: {:.1f} of heap, {:.1f} of stacks (two threads)\n",
                      resident / ranks / kib, f.heap_each() / kib, static_cast<double>(f.stacks) / ranks / kib);
  text += fmt::format("  idle peer       {:.1f} B ({} to {} ranks), {:.0f} allowed\n", f.per_idle_peer(), f.fewer_ranks,
                      f.ranks, most_per_idle_peer);
  text += fmt::format("  active peer     {:.0f} B, {:.0f} allowed; and {:.0f} B in the simulator\n", f.per_used_peer(),
                      most_per_used_peer, f.simulated_per_used_peer());
  text += fmt::format("  left behind     {:.1f} B per engine, {:.0f} allowed\n", f.left_behind, f.most_left_behind());
  return text;
}

void check_limits(const ScaleFigures& f, std::vector<std::string>* complaints) {
  const auto check = [&](const char* what, double is, double allowed) {
    if (is > allowed) complaints->push_back(fmt::format("scale: {}: {:.0f} B, {:.0f} allowed", what, is, allowed));
  };
  check("memory in all", static_cast<double>(most_resident()), static_cast<double>(most_memory));
  check("an idle peer", f.per_idle_peer(), most_per_idle_peer);
  check("an active peer", f.per_used_peer(), most_per_used_peer);
  check("left behind by each engine", f.left_behind, f.most_left_behind());
}

/// Returns the heap of an engine in a job that starts and ends.
double heap_each(const RunOptions& options, int ranks, Outcome* outcome) {
  ScaleJob job(options, ranks);
  const MemoryUse before = memory_after_trim();
  double each = 0;
  if (job.start({})) {
    each = heap_of_engines(memory_use(), before) / ranks;
    job.disconnect();
  }
  outcome->complaints = job.world.complaints();
  return each;
}

void conclude(ScaleJob& job, bool rest, const std::vector<std::unique_ptr<ExchangeRank>>& ranks, Outcome* outcome) {
  const World& world = job.world;
  note_world(world, outcome);
  std::size_t shown = 0;
  for (int rank = 0; !rest && rank < world.options().ranks && shown < states_shown; ++rank) {
    if (world.is_through(rank)) continue;
    outcome->wait_graph += ranks[static_cast<std::size_t>(rank)]->state() + "\n";
    ++shown;
  }
}

/// Runs the job. Returns false if it did not end.
bool run_job(const RunOptions& options, const Plan& plan, ScaleFigures* f, Outcome* outcome) {
  ScaleJob job(options, f->ranks);
  Oracle oracle(job.world, plan);
  std::vector<std::unique_ptr<ExchangeRank>> ranks;
  for (int rank = 0; rank < f->ranks; ++rank) ranks.push_back(std::make_unique<ExchangeRank>(plan, oracle, rank));
  f->before = memory_after_trim();
  bool rest = job.start([&](int rank, canele_engine_t* engine) { ranks[static_cast<std::size_t>(rank)]->run(engine); });
  f->started = memory_use();
  f->stacks = job.world.scheduler.resident_stacks();
  rest = rest && job.work();
  f->worked = memory_use();
  f->peers = rest ? job.peers() : 0;
  rest = rest && job.disconnect();
  f->phases = job.phases;
  if (rest) oracle.final_check();
  outcome->completed = oracle.completed;
  conclude(job, rest, ranks, outcome);
  return rest;
}

Plan plan_for(const RunOptions& options, ScaleFigures* f) {
  ExchangeOptions planned;
  planned.ranks = f->ranks;
  planned.partners = options.partners;
  Plan plan = plan_exchange(planned, Dice(options.seed));
  f->messages = plan.messages.size();
  for (const PlannedMessage& message : plan.messages) f->bytes += message.size;
  return plan;
}

}  // namespace

Outcome run_scale(const RunOptions& options) {
  Outcome outcome;
  ScaleFigures f;
  f.ranks = options.ranks != 0 ? options.ranks : 1024;
  f.fewer_ranks = f.ranks / 4;
  outcome.world = fmt::format("{} ranks, 8 per node, aggregate, worker, networks memory rma", f.ranks);
  if (f.ranks < fewest_ranks) {
    outcome.complaints.push_back(
        fmt::format("scale: --ranks {}; expected: at least {}, or 0 for 1024", f.ranks, fewest_ranks));
  }
  if (const std::string why = make_room_for(f.ranks); !why.empty()) outcome.complaints.push_back("scale: " + why);
  if (!outcome.complaints.empty()) return outcome;

  ScaleFigures warm_up;  // covers allocations that happen once in a process, and what malloc keeps
  warm_up.ranks = fewest_ranks;
  run_job(options, plan_for(options, &warm_up), &warm_up, &outcome);
  f.fewer_heap_each = heap_each(options, f.fewer_ranks, &outcome);
  if (!outcome.complaints.empty()) return outcome;
  const Plan plan = plan_for(options, &f);
  const MemoryUse before = memory_use();
  if (run_job(options, plan, &f, &outcome)) {
    f.left_behind = heap_of_engines(memory_use(), before) / f.ranks;
    outcome.report = report(f);
    check_limits(f, &outcome.complaints);
  }
  outcome.good = outcome.complaints.empty();
  return outcome;
}

}  // namespace canele::sim
