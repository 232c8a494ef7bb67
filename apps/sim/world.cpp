// SPDX-License-Identifier: BSD-3-Clause
//
// The life of a simulated job. One thread.
//
// The engine of a rank that is killed is destroyed with the world, not before. No destructor runs in a killed process,
// and pointers into it must stay valid.
#include "apps/sim/world.hpp"

#include <atomic>
#include <cstdio>
#include <utility>

#include "apps/sim/audit.hpp"
#include "comm/api/api.hpp"
#include "comm/diagnose/hang_collect.hpp"
#include "comm/registry/registry.hpp"
#include "drivers/sim/sim.hpp"

namespace canele::sim {
namespace {

constexpr std::uint64_t launcher_ns = 2'000'000;  // time until the launcher has reported a death to all ranks, at most

std::string next_name() {
  static int worlds = 0;
  return "world" + std::to_string(++worlds);
}

}  // namespace

World::World(WorldOptions options)
    : dice(options.seed),
      scheduler(
          timeline, dice.split(1),
          {[] { return comm::callbacks_on_this_thread; }, [](int depth) { comm::callbacks_on_this_thread = depth; }}),
      machine{timeline,
              scheduler,
              bells,
              [this](int rank, LogLevel level, std::string_view text) { log(rank, level, text); },
              {},
              options.timer_factor,
              options.slowest_answer_ns,
              options.ranks_per_node,
              {}},
      options_(std::move(options)),
      name_(next_name()) {
  board_->size = options_.ranks;
  board_->local_size = options_.ranks_per_node;
  board_->deaths_break_fences = options_.deaths_break_fences;
  int number = 0;
  for (const Network& network : options_.networks) {
    FabricOptions fabric = network.options;
    fabric.name = name_ + "." + std::to_string(++number);
    fabric.ranks = options_.ranks;
    fabric.ranks_per_node = options_.ranks_per_node;
    Fabric::World around{timeline,
                         bells,
                         [this](std::uint64_t ns) { scheduler.spend(ns + pay_for_comparisons()); },
                         [this](const std::string& what) { complain(what); },
                         [this](std::uint64_t what) { trace(what); },
                         [this](int from, int to) {
                           if (on_damage) on_damage(from, to);
                         },
                         [this](int from, int to) {
                           if (on_spoiled) on_spoiled(from, to);
                         }};
    fabrics_.push_back(
        std::make_unique<Fabric>(std::move(around), fabric, dice.split(100 + static_cast<std::uint64_t>(number))));
  }
  ranks_.resize(static_cast<std::size_t>(options_.ranks));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    ranks_[static_cast<std::size_t>(rank)].platform = make_platform(rank);
  }
}

std::unique_ptr<SimPlatform> World::make_platform(int rank) {
  const unsigned enough = static_cast<unsigned>(2 * options_.ranks_per_node);
  return std::make_unique<SimPlatform>(machine, rank, dice.split(10'000 + static_cast<std::uint64_t>(rank)),
                                       options_.processors != 0 ? options_.processors : enough);
}

World::~World() = default;

void World::start(Body body) {
  body_ = std::make_shared<Body>(std::move(body));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const std::uint64_t late_ns = options_.latest_start_ns == 0 ? 0 : dice.under(options_.latest_start_ns);
    scheduler.spawn("main", rank, [this, rank, late_ns] {
      if (late_ns > 0) scheduler.pause_for(late_ns);
      live(rank, *body_);
    });
  }
}

comm::Engine* World::make_engine(int rank) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  comm::EngineParts parts;
  parts.platform = own.platform.get();
  parts.settings = std::make_unique<comm::Settings>(*own.platform, options_.settings);
  if (!parts.settings->error().empty()) {
    complain("settings: " + parts.settings->error());
    return nullptr;
  }
  parts.bootstrap = std::make_unique<SimBootstrap>(board_, machine, rank, dice.split(20'000));
  parts.drivers.emplace_back(comm::find_driver("self"));
  for (std::size_t i = 0; i < fabrics_.size(); ++i) {
    comm::DriverChoice choice(&drivers::sim_factory);
    choice.argument = fabrics_[i]->options().name;
    choice.with_previous = options_.networks[i].with_previous;
    parts.drivers.push_back(std::move(choice));
  }
  parts.strategy = comm::find_strategy(options_.strategy);
  parts.check_hang = comm::hang::check;
  std::string why;
  std::unique_ptr<comm::Engine> engine = comm::Engine::create(std::move(parts), &why);
  if (engine == nullptr && deaths() == 0) complain("rank " + std::to_string(rank) + " does not start: " + why);
  if (engine != nullptr && options_.trace_events != 0) engine->start_tracing(options_.trace_events);
  if (engine != nullptr && options_.shuffled_tasks != 0)
    engine->tasks.shuffle(options_.shuffled_tasks + static_cast<std::uint64_t>(rank));
  return engine.release();
}

void World::live(int rank, const Body& body) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  own.engine = make_engine(rank);
  if (own.engine == nullptr) {
    own.disconnecting = own.through = recount_ = true;
    return;
  }
  if (own.platform->busy_locks > 0) own.platform->lock_appears_busy = SimPlatform::appears_busy;
  canele_engine_t* const handle = comm::api::public_of(*own.engine);
  canele_worker_use(handle, (options_.worker ? CANELE_WORKER_BOUND : CANELE_WORKER_NONE) | options_.on_demand_progress);
  body(rank, handle);
  if (const std::string wrong = audit(*own.engine); !wrong.empty())
    complain("rank " + std::to_string(rank) + ": " + wrong);
  if (own.engine->event_log != nullptr) {
    own.engine->lock_for_callback();
    logs_.emplace_back(rank, std::move(own.engine->event_log));
    own.engine->unlock();
  }
  own.compared = own.engine->matcher.statistics().total.attempts;
  own.disconnecting = true;
  const int code = canele_finalize(handle);
  own.engine = nullptr;
  own.through = recount_ = true;
  trace(static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(-code));
}

/// Returns true if all ranks are through. Called at every step, so it scans the ranks only after one of them has ended.
bool World::all_through() {
  if (!std::exchange(recount_, false)) return false;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!is_through(rank) && is_running(rank)) return false;
  }
  return true;
}

bool World::run(std::uint64_t until_ns) {
  return run_until([this] { return all_through(); }, until_ns);
}

bool World::run_until(const std::function<bool()>& done, std::uint64_t until_ns) {
  const auto stop = [&] { return !complaints_.empty() || done(); };
  return scheduler.run(stop, until_ns) && complaints_.empty();
}

void World::kill(int rank) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  if (!own.running || is_through(rank)) return;
  own.running = false;
  scheduler.kill(rank);
  for (const auto& fabric : fabrics_) fabric->kill(rank);
  board_->died(rank, scheduler);
  recount_ = true;
  std::unique_ptr<comm::Engine> engine(std::exchange(own.engine, nullptr));
  if (own.disconnecting) {
    // Its thread may be in finalize and hold a mutex. The engine is left in that state, like everything that a killed
    // process leaves.
    static_cast<void>(engine.release());
  } else if (engine != nullptr) {
    killed_engines_.push_back(std::move(engine));
  }
  for (int other = 0; other < options_.ranks; ++other) {
    timeline.after(dice.under(launcher_ns), [this, other, rank] {
      const auto handler = board_->failure_handlers.find(other);
      if (handler != board_->failure_handlers.end()) handler->second(rank);
    });
  }
}

void World::come_back(int rank) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  if (own.running) return;
  old_platforms_.push_back(std::exchange(own.platform, make_platform(rank)));
  ++own.life;
  own.running = true;
  own.disconnecting = false;
  scheduler.spawn("main", rank, [this, rank] { live(rank, *body_); });
}

void World::complain(const std::string& what) {
  complaints_.push_back(what);
  if (options_.verbose)
    std::fprintf(stderr, "%12.3f us  COMPLAINT: %s\n", static_cast<double>(timeline.now()) / 1000.0, what.c_str());
}

void World::trace(std::uint64_t what) {
  hash_ = (hash_ ^ what ^ (timeline.now() << 7)) * 0x100000001b3u;
  hash_ ^= hash_ >> 29;
}

void World::log(int rank, LogLevel level, std::string_view text) {
  if (level <= LogLevel::warning && first_warning_.empty())
    first_warning_ = "rank " + std::to_string(rank) + " says: " + std::string(text);
  if (options_.verbose) {
    std::fprintf(stderr, "%12.3f us  %d %.*s\n", static_cast<double>(timeline.now()) / 1000.0, static_cast<int>(level),
                 static_cast<int>(text.size()), text.data());
  }
}

/// Returns the time of the comparisons of the running thread's engine since the last call, in nanoseconds.
std::uint64_t World::pay_for_comparisons() {
  if (options_.comparison_ns == 0 || scheduler.current() == nullptr) return 0;
  Rank& own = ranks_[static_cast<std::size_t>(scheduler.current()->rank)];
  if (own.engine == nullptr) return 0;
  const std::uint64_t compared = own.engine->matcher.statistics().total.attempts;
  const auto count = static_cast<double>(compared - std::exchange(own.compared, compared));
  return static_cast<std::uint64_t>(count * options_.comparison_ns);
}

std::string World::trace_json() const {
  std::vector<comm::EventLog::OfRank> logs;
  for (const auto& [rank, log] : logs_) logs.push_back({rank, log.get()});
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const comm::Engine* const left = engine(rank);  // still there if the world has not come to rest
    if (left != nullptr && left->event_log != nullptr) logs.push_back({rank, left->event_log.get()});
  }
  return comm::EventLog::to_json(logs);
}

std::uint64_t World::comparisons() const {
  std::uint64_t sum = 0;
  for (const Rank& rank : ranks_) sum += rank.compared;
  return sum;
}

std::string World::wait_graph() const {
  std::string text;
  for (const auto& thread : scheduler.threads()) {
    if (thread->done || thread->killed) continue;
    text += "rank " + std::to_string(thread->rank) + " " + thread->name + ": " +
            (thread->waits ? thread->doing : "runs") + "\n";
  }
  return text;
}

}  // namespace canele::sim
