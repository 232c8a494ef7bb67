// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end of an engine: opens the drivers, publishes addresses, shares the secret, and undoes all of it.
//
// Called by one thread. These functions may block on the launcher; nothing else in engine/ does.
//
// The drivers know the place of the secret before its value is there. No rank can connect before all ranks have met.
#include <algorithm>
#include <cstring>

#include "comm/engine/connect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/matching/alternatives/factory.hpp"
#include "comm/protocol/send.hpp"
#include "comm/registry/registry.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace canele::comm {
namespace {

constexpr std::size_t secret_size = 16;

ltask::Idle::Budget idle_budget(const Settings& settings, bool oversubscribed) {
  ltask::Idle::Budget budget;
  if (oversubscribed) budget.spin_ns = 0;
  budget.spin_ns = settings.number(Setting::spin, budget.spin_ns);
  return budget;
}

/// Makes ready tasks run in random order, in debug builds, so that no code can rely on an order.
void shuffle_tasks(Engine& engine) {
  std::uint64_t seed = engine.lifecycle.settings->fault("shuffle-tasks");
#ifdef CANELE_SHUFFLE_TASKS
  if (seed == 0) seed = engine.platform.random() % 1'000'000 + 1;
#endif
  if (seed == 0) return;
  engine.tasks.shuffle(seed);
  engine.log(LogLevel::info, "tasks run in the order of CANELE_EXPERT_FAULT=shuffle-tasks:" + std::to_string(seed));
}

}  // namespace

/// The steps of Engine::create(), in order. Each returns false and sets *why if it fails.
struct EngineBuilder {
  static bool open_driver(Engine& engine, const DriverChoice& choice, std::string* why) CANELE_UNDER_LOCK {
    const drivers::DriverFactory& factory = *choice.factory;
    if (factory.contract != drivers::contract_version) {
      *why = "was built for version " + std::to_string(factory.contract) +
             " of the driver contract; expected: " + std::to_string(drivers::contract_version);
      return false;
    }
    *why = factory.unavailable();
    if (!why->empty()) return false;
    auto instance = std::make_unique<DriverInstance>(engine, factory);
    instance->argument = choice.argument;
    if (const std::string& list = engine.lifecycle.settings->text(Setting::decorators); !list.empty()) {
      instance->driver = comm::decorate(list, std::move(instance->driver), why);
      if (instance->driver == nullptr) return false;
    }
    if (engine.lifecycle.checksums && factory.name != "self")
      instance->driver = comm::with_checksums(std::move(instance->driver));
    instance->index = engine.instances.size();
    instance->label = label_of(engine, factory);
    instance->group = engine.instances.empty() ? 0 : engine.instances.back()->group + (choice.with_previous ? 0 : 1);
    if (instance->driver->open(*instance, &instance->address, why) == drivers::Status::failed) return false;
    if (!instance->driver->capabilities().bulk_stream) {
      *why = "it lacks the capability bulk_stream, which large messages need";
      instance->driver->close();
      return false;
    }
    instance->costs = costs_of(engine, *instance);
    const int descriptor = instance->driver->descriptor();
    if (instance->driver->capabilities().wake_up == drivers::WakeUp::none) {
      engine.driver_set.lacks_wakeup = engine.driver_set.lacks_wakeup || !instance->driver->capabilities().reaches_self;
    } else if (descriptor >= 0 && !engine.sleeper.watch(descriptor)) {
      *why = "its descriptor cannot be watched";
      instance->driver->close();
      return false;
    }
    if (instance->memory_only() && !instance->driver->capabilities().reaches_self)
      engine.driver_set.polled.push_back(instance.get());
    if (!instance->memory_only())
      engine.progress.long_message = std::min(engine.progress.long_message, long_length(instance->costs));
    (instance->memory_only() ? engine.driver_set.memory : engine.driver_set.system).push_back(instance.get());
    engine.instances.push_back(std::move(instance));
    return true;
  }

  /// Returns the length, in bytes, from which a message is expected to take longer than the help for it costs.
  static std::size_t long_length(const strategies::Costs& costs) {
    constexpr double long_ns = 20'000;
    constexpr std::size_t shortest = 1024, longest = std::size_t{1} << 30;
    std::size_t length = shortest;
    while (length < longest && costs.time_ns(length) < long_ns) length *= 2;
    return length;
  }

  /// Reads the samples. One rank of each host reports what is wrong with them.
  static void find_samples(Engine& engine) {
    engine.driver_set.samples = read_samples(engine.platform, *engine.lifecycle.settings);
    const Samples& samples = engine.driver_set.samples;
    if (samples.problem.empty() || engine.lifecycle.bootstrap->local_rank() != 0) return;
    const bool stale = samples.state == Samples::State::stale;
    engine.log(stale ? LogLevel::debug : LogLevel::warning,
               samples.file + ": " + samples.problem +
                   (samples.state == Samples::State::read ? "" : "; the file is ignored") +
                   "; run canele-perf sample to write it again");
  }

  /// Returns the driver's costs. Samples are not used for a decorated driver, because it is not the one that was
  /// measured.
  static strategies::Costs costs_of(Engine& engine, const DriverInstance& instance) {
    const drivers::Capabilities& capabilities = instance.driver->capabilities();
    const std::string name =
        std::string(instance.factory.name) + (instance.argument.empty() ? "" : ":" + instance.argument);
    const bool bare = engine.lifecycle.settings->text(Setting::decorators).empty() && !engine.lifecycle.checksums;
    return comm::costs_of(bare ? engine.driver_set.samples : Samples{}, name, capabilities);
  }

  static std::string label_of(const Engine& engine, const drivers::DriverFactory& factory) {
    const auto same = [&](const std::unique_ptr<DriverInstance>& instance) { return &instance->factory == &factory; };
    const auto earlier = std::count_if(engine.instances.begin(), engine.instances.end(), same);
    return std::string(factory.name) + (earlier == 0 ? "" : "#" + std::to_string(earlier));
  }

  /// Opens the drivers. If no driver reaches other ranks, the problems are the error. Otherwise one rank of each host
  /// reports them.
  static bool open_drivers(Engine& engine, const std::vector<DriverChoice>& choices,
                           std::string* why) CANELE_UNDER_LOCK {
    std::vector<std::string> problems;
    bool reaches_others = engine.size == 1, reaches_itself = true;
    for (const DriverChoice& choice : choices) {
      const drivers::DriverFactory* const factory = choice.factory;
      std::string problem;
      if (open_driver(engine, choice, &problem)) {
        reaches_others = reaches_others || !engine.instances.back()->driver->capabilities().reaches_self;
      } else {
        problems.push_back(std::string(factory->name) + ": " + problem);
        reaches_itself = reaches_itself && factory->name != "self";
      }
    }
    if (!reaches_others || !reaches_itself) {
      *why = "CANELE_DRIVERS=\"" + engine.lifecycle.settings->text(Setting::drivers) +
             "\": no driver can be used that reaches " + (reaches_others ? "the rank itself" : "other ranks");
      for (const std::string& one : problems) *why += "; " + one;
      return false;
    }
    const LogLevel level = engine.lifecycle.bootstrap->local_rank() == 0 ? LogLevel::warning : LogLevel::debug;
    for (const std::string& one : problems) engine.log(level, "a driver is not used: " + one);
    return true;
  }

  /// Returns the start timeout, in nanoseconds. Unless the user has set it, it grows with the number of ranks, because
  /// the launcher starts and queries them one after the other.
  static std::uint64_t start_timeout(const Engine& engine) {
    constexpr std::uint64_t second = 1'000'000'000, of_each_rank = second / 10;
    const std::uint64_t said = engine.lifecycle.settings->number(Setting::start_timeout) * second;
    if (engine.lifecycle.settings->source(Setting::start_timeout) != Source::fallback) return said;
    return said + static_cast<std::uint64_t>(engine.size) * of_each_rank;
  }

  static bool meet(Engine& engine, std::string* why) {
    Bootstrap& b = *engine.lifecycle.bootstrap;
    const std::uint64_t timeout_ns = start_timeout(engine);
    if (engine.rank == 0) {
      for (std::size_t i = 0; i < secret_size; i += sizeof(std::uint64_t)) {
        const std::uint64_t word = engine.platform.random();
        std::memcpy(engine.lifecycle.secret.data() + i, &word, sizeof word);
      }
      if (!b.put("secret", engine.lifecycle.secret, why)) return false;
    }
    if (!b.put("address", peers::make_address(engine), why) || !b.commit_and_fence(timeout_ns, why)) return false;
    return engine.rank == 0 || fetch_secret(engine, timeout_ns, why);
  }

  static bool fetch_secret(Engine& engine, std::uint64_t timeout_ns, std::string* why) {
    struct Answer {
      std::atomic<std::uint32_t> there{0};
      bool ok = false;
      Blob blob;
      std::string why;
    };
    const auto answer = std::make_shared<Answer>();
    Platform& platform = engine.platform;
    engine.lifecycle.bootstrap->get(0, "secret", timeout_ns,
                                    [answer, &platform](bool ok, Blob blob, std::string reason) {
                                      answer->ok = ok;
                                      answer->blob = std::move(blob);
                                      answer->why = std::move(reason);
                                      answer->there.store(1, std::memory_order_release);
                                      platform.unpark(answer->there);
                                    });
    constexpr std::uint64_t turn_ns = 100'000'000;
    while (answer->there.load(std::memory_order_acquire) == 0) {
      if (engine.lifecycle.bootstrap->descriptor() >= 0)
        engine.lifecycle.bootstrap->progress(turn_ns);
      else
        platform.park(answer->there, 0, turn_ns);
    }
    if (!answer->ok || answer->blob.size() != secret_size) {
      *why = "rank 0 did not publish the secret of the job: " + answer->why;
      return false;
    }
    std::copy(answer->blob.begin(), answer->blob.end(), engine.lifecycle.secret.begin());
    return true;
  }

  static bool watch_launcher(Engine& engine, std::string* why) {
    struct Died : CallOp {
      int rank = 0;
    };
    engine.lifecycle.bootstrap->on_failure([&engine](int rank) {
      auto* died = new Died;
      died->kind = OpKind::call;
      died->rank = rank;
      died->call = [](Context& context, CallOp& op) CANELE_UNDER_LOCK {
        Engine& e = engine_of(context);
        const std::unique_ptr<Died> d(static_cast<Died*>(&op));
        if (d->rank >= 0 && d->rank < e.size && d->rank != e.rank) peers::launcher_failed(e, d->rank);
      };
      engine.submit(*died);
      engine.wake();
    });
    const int descriptor = engine.lifecycle.bootstrap->descriptor();
    engine.lifecycle.serves_bootstrap = descriptor >= 0;
    if (descriptor < 0 || engine.sleeper.watch(descriptor)) return true;
    *why = "the connection to the launcher cannot be watched";
    return false;
  }

  /// Sets the limits of the memory for unexpected messages. Every rank may use its first credit without asking. A rank
  /// that does so gets a window. With few ranks, this window is wide enough for a stream of eager messages.
  static bool set_credit(Engine& engine, std::string* why) CANELE_UNDER_LOCK {
    const auto ranks = static_cast<std::uint64_t>(engine.size);
    const std::uint64_t least = ranks * wire::first_credit;
    const std::uint64_t usual = std::max(std::uint64_t{64} << 20, 2 * least);
    engine.credit.limit = engine.lifecycle.settings->number(Setting::unexpected_memory, usual);
    engine.credit.per_peer = engine.lifecycle.settings->number(Setting::unexpected_per_peer, engine.credit.limit / 4);
    constexpr std::uint64_t narrow = 64 << 10, wide = 1 << 20;
    engine.credit.first_target =
        std::min(std::clamp(engine.credit.limit / (2 * ranks), narrow, wide), engine.credit.per_peer);
    engine.credit.reserved = least;
    if (engine.credit.limit >= least) return true;
    *why = "CANELE_UNEXPECTED_MEMORY is " + std::to_string(engine.credit.limit) + " bytes; " + std::to_string(ranks) +
           " ranks need at least " + std::to_string(least) + ", " + std::to_string(wire::first_credit) + " for each";
    return false;
  }

  static std::unique_ptr<Engine> build(EngineParts parts, std::string* why, int* code) {
    const auto choices = std::move(parts.drivers);
    std::unique_ptr<Engine> engine(new Engine(std::move(parts)));
    const auto failed = [code](int how) {
      *code = how;
      return nullptr;
    };
    assume_lock();  // no other thread knows the engine yet
    if (!engine->sleeper.error().empty()) {
      *why = engine->sleeper.error();
      return failed(CANELE_ENOMEM);
    }
    find_samples(*engine);
    if (!set_credit(*engine, why)) return failed(CANELE_EINVAL);
    if (!open_drivers(*engine, choices, why)) return failed(CANELE_EDRIVER);
    if (!meet(*engine, why) || !watch_launcher(*engine, why)) return nullptr;
    return engine;
  }
};

Engine::Engine(EngineParts parts)
    : Context(*parts.platform, *parts.settings, *parts.bootstrap, rendezvous_state_, multicasts_),
      lifecycle{.settings = std::move(parts.settings),
                .bootstrap = std::move(parts.bootstrap),
                .strategy = *parts.strategy,
                .process = platform.process(),
                .secret = std::vector<std::byte>(secret_size)},
      progress(platform, *this, idle_budget(*lifecycle.settings, oversubscribed),
               idle_budget(*lifecycle.settings, is_oversubscribed(platform, *lifecycle.bootstrap, 2)), oversubscribed),
      placement{.cores = std::move(parts.cores), .on_this_machine = parts.on_this_machine},
      diagnostics{.check_hang = parts.check_hang} {
  lifecycle.checksums = lifecycle.settings->text(Setting::checksum) == "packets";
  if (!lifecycle.settings->text(Setting::trace).empty())
    start_tracing(lifecycle.settings->number(Setting::trace_events));
  multicasts.session.context = this;
  multicasts.relay_limit = lifecycle.settings->number(Setting::multicast_memory);
  multicasts.shape_override = multicast::shape_named(lifecycle.settings->text(Setting::multicast));
  if (lifecycle.settings->text(Setting::host_threads) == "busy" &&
      is_oversubscribed(platform, *lifecycle.bootstrap, 2)) {
    placement.no_core_for_worker = true;
    progress.on_demand.assume_contention();
  }
  if (oversubscribed) progress.waiters.contention.doubt();
  shuffle_tasks(*this);
  enable_lock_bias(true);
}

Engine::~Engine() {
  progress.on_demand.stop();
  progress.worker.stop();
  buffered::forget_all(*this);
  for (const auto& instance : instances) instance->driver->close();
  sessions.each([this](Session& session) {
    assume_lock();  // no other thread uses the engine any more
    matcher.drain(session.match, [this](UnexpectedNode& node) {
      assume_lock();
      messages.release(static_cast<Message&>(node));
    });
  });
  while (matched_unbound.first != nullptr) {
    auto& message = static_cast<Message&>(*matched_unbound.first);
    matched_unbound.unlink(message);
    messages.release(message);
  }
  lifecycle.bootstrap->finalize();  // no callback comes after it
}

std::unique_ptr<Engine> Engine::create(EngineParts parts, std::string* why, int* code) {
  int unasked;
  if (code == nullptr) code = &unasked;
  *code = CANELE_EBOOTSTRAP;
  return EngineBuilder::build(std::move(parts), why, code);
}

void Engine::start_tracing(std::size_t capacity) {
  event_log = std::make_unique<EventLog>(capacity);
  inspect_deliveries = true;
  for (const auto& known : active_peers) {
    for (const auto& rail : known->rails) send_path::update_fast_limits(*this, *rail);
  }
}

}  // namespace canele::comm
