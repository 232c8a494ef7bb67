// SPDX-License-Identifier: BSD-3-Clause
//
// Counters, self-description and reports of the C ABI.
//
// Any thread. A driver's own counters are read without stopping the driver, so a value may be one event old.
#include <algorithm>

#include "comm/api/api.hpp"
#include "comm/api/worker_place.hpp"
#include "comm/config/names.hpp"
#include "comm/diagnose/hang_collect.hpp"
#include "comm/observe/report.hpp"
#include "comm/registry/modules.hpp"
#include "comm/registry/registry.hpp"
#include "ltask/topology.hpp"

namespace canele::comm::api {
namespace {

/// The environment that a driver needs to be opened and closed again: no peer connects, and no callback does anything.
class ProbeContext final : public drivers::DriverContext, drivers::DriverEvents {
 public:
  explicit ProbeContext(const Settings& settings) : settings_(settings) {
    secret = key_;
    events = this;
    incarnation = posix_platform().random();
    job = incarnation;
  }
  std::uint64_t now_ns() override { return posix_platform().now_ns(); }
  std::uint64_t random() override { return posix_platform().random(); }
  std::string setting(std::string_view name, std::string_view fallback) override {
    return settings_.by_name(name, fallback);
  }
  void log(int, std::string_view) override {}
  drivers::Take packet(drivers::Rank, std::span<const std::byte>) override { return drivers::Take::rejected; }
  int bulk_destination(drivers::Rank, std::uint64_t, std::uint64_t, std::uint64_t, iovec*, int) override { return 0; }
  void bulk_written(drivers::Rank, std::uint64_t, std::uint64_t, std::uint64_t) override {}
  void done(drivers::Token, drivers::Status) override {}
  void ready(drivers::Rank) override {}
  void connected(drivers::Rank) override {}
  void failed(drivers::Rank, bool, std::string_view) override {}

 private:
  const Settings& settings_;
  std::byte key_[16] = {};
};

/// Opens the driver and closes it again, to learn its capabilities on this machine.
void probe_driver(const Settings& settings, const Samples& samples, const drivers::DriverFactory& factory,
                  InfoReport::OneDriver* driver) {
  driver->unavailable = factory.unavailable();
  if (!driver->unavailable.empty()) return;
  ProbeContext context(settings);
  drivers::Address address;
  const auto instance = factory.create();
  if (instance->open(context, &address, &driver->unavailable) == drivers::Status::failed) return;
  driver->capabilities = instance->capabilities();
  driver->costs = costs_of(samples, factory.name, driver->capabilities);
  instance->close();
}

InfoReport::OneDriver describe_driver(const Engine* engine, const Settings& settings, const Samples& samples,
                                      const drivers::DriverFactory& factory) {
  InfoReport::OneDriver driver{std::string(factory.name), std::string(factory.summary), "", false, {}};
  for (std::size_t i = 0; engine != nullptr && i < engine->instances.size(); ++i) {
    if (&engine->instances[i]->factory != &factory) continue;
    driver.open = true;
    driver.capabilities = engine->instances[i]->driver->capabilities();
    driver.costs = engine->instances[i]->costs;
  }
  if (!driver.open) probe_driver(settings, samples, factory, &driver);
  if (factory.network != nullptr) driver.network = factory.network();
  return driver;
}

/// Describes the built-in drivers, those found as modules, and those that come with Canelé but are missing, with the
/// reason.
std::vector<InfoReport::OneDriver> describe_drivers(const Engine* engine, const Settings& settings,
                                                    const Samples& samples) {
  const std::string& path = settings.text(Setting::driver_path);
  std::vector<InfoReport::OneDriver> all;
  for (const auto* factory : all_drivers()) all.push_back(describe_driver(engine, settings, samples, *factory));
  for (const Module& module : open_modules(path)) {
    all.push_back(module.factory != nullptr ? describe_driver(engine, settings, samples, *module.factory)
                                            : InfoReport::OneDriver{module.name, "", module.problem, false, {}});
  }
  for (const ModuleName& known : known_modules) {
    const auto same_name = [&](const InfoReport::OneDriver& one) { return one.name == known.name; };
    if (std::any_of(all.begin(), all.end(), same_name)) continue;
    const Module module = open_module(known.name, path);
    all.push_back({std::string(known.name), std::string(known.summary), module.problem, false, {}});
  }
  return all;
}

InfoReport info(const Engine* engine) {
  InfoReport report;
  Settings own(posix_platform(), {});
  const Settings& settings = engine != nullptr ? *engine->lifecycle.settings : own;
  report.version = CANELE_VERSION;
  report.abi = CANELE_ABI_VERSION;
  report.samples = engine != nullptr ? engine->driver_set.samples : read_samples(posix_platform(), settings);
  report.drivers = describe_drivers(engine, settings, report.samples);
  for (const auto* factory : all_strategies())
    report.strategies.push_back({std::string(factory->name), std::string(factory->summary)});
  report.settings = describe(settings);
  report.settings_error = settings.error();
  const ltask::Topology topology;
  report.topology = {topology.describe(), topology.problem(), topology.allowed_text(), topology.units()};
  report.worker.active = engine != nullptr && engine->progress.worker.active();
  report.worker.place = engine != nullptr ? describe_workers(*engine) : describe_workers(settings, topology);
  report.has_engine = engine != nullptr;
  if (engine != nullptr) {
    report.job = {engine->rank, engine->size, std::string(engine->lifecycle.bootstrap->name()),
                  engine->lifecycle.bootstrap->host()};
  }
  return report;
}

int give_text(const std::string& json, char* text, std::size_t size, std::size_t* needed) {
  if (text == nullptr && size != 0) return error(CANELE_EINVAL, "size is not 0 but text is NULL");
  if (copy_text(json, text, size, needed)) return CANELE_OK;
  return error(CANELE_ENOMEM,
               "the text needs " + std::to_string(json.size() + 1) + " bytes, " + std::to_string(size) + " were given");
}

std::uint64_t driver_counter(const drivers::Driver::Counters& c, Counter counter) {
  switch (counter) {
    case Counter::packets_sent:
      return c.packets_sent;
    case Counter::packets_received:
      return c.packets_received;
    case Counter::bytes_sent:
      return c.bytes_sent + c.bulk_bytes_sent;
    case Counter::bytes_received:
      return c.bytes_received + c.bulk_bytes_received;
    default:
      return 0;
  }
}

/// Reads a counter of the whole engine. Called under the lock.
std::uint64_t read(const Engine& engine, Counter counter) CANELE_UNDER_LOCK {
  if (counter == Counter::core_losses) return engine.core_losses();
  if (counter >= Counter::per_peer_count) return engine.counters.read(counter);
  std::uint64_t sum = 0;
  for (const auto& peer : engine.active_peers) sum += peer->counters.read(counter);
  return sum;
}

}  // namespace

std::string counters_json(Engine& engine) {
  CountersReport report;
  report.version = CANELE_VERSION;
  report.rank = engine.rank;
  report.size = engine.size;
  engine.lock_for_callback();
  for (int i = 0; i < static_cast<int>(Counter::count); ++i)
    report.counters.push_back(read(engine, static_cast<Counter>(i)));
  for (const auto& peer : engine.active_peers) {
    const DriverInstance* instance = peer->rail->instance;
    report.peers.push_back(
        {peer->rank, instance != nullptr ? std::string(instance->factory.name) : "", read_all(peer->counters)});
  }
  engine.unlock();
  for (const auto& instance : engine.instances)
    report.drivers.push_back(
        {std::string(instance->factory.name), instance->driver->counters, instance->driver->polls()});
  return to_json(report);
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_counter_count(void) { return counter_names; }

const char* canele_counter_name(int index) {
  if (index < 0 || index >= canele_counter_count()) return nullptr;
  return counter_name(index).name.data();
}

const char* canele_counter_help(int index) {
  if (index < 0 || index >= canele_counter_count()) return nullptr;
  return counter_name(index).help.data();
}

int canele_counter_read(canele_engine_t* engine, int index, int peer, const char* driver, uint64_t* value) try {
  if (engine == nullptr || value == nullptr)
    return error(CANELE_EINVAL, "canele_counter_read: engine and value must be given");
  if (fork::in_child) return reject_in_child("canele_counter_read");
  Engine& e = engine_of(engine);
  if (index < 0 || index >= canele_counter_count()) {
    return error(CANELE_EINVAL, "canele_counter_read: no counter " + std::to_string(index) + "; expected: 0 to " +
                                    std::to_string(counter_names - 1));
  }
  if (peer < -1 || peer >= e.size) return error(CANELE_ERANK, "canele_counter_read: no rank " + std::to_string(peer));
  const Counter counter = counter_of_name(index);
  if (driver != nullptr) {
    for (const auto& instance : e.instances) {
      if (instance->factory.name != driver) continue;
      *value = driver_counter(instance->driver->counters, counter);
      return CANELE_OK;
    }
    return error(CANELE_EINVAL, std::string("canele_counter_read: no driver \"") + driver + "\" is open");
  }
  e.lock_for_callback();
  if (peer < 0) {
    *value = read(e, counter);
  } else {
    const Peer* p = e.peers[peer];
    *value = p != nullptr ? p->counters.read(counter) : 0;
  }
  e.unlock();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_counters_json(canele_engine_t* engine, char* text, size_t size, size_t* needed) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_counters_json: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_counters_json");
  return give_text(counters_json(engine_of(engine)), text, size, needed);
} catch (...) {
  return caught();
}

int canele_report(canele_engine_t* engine, char* text, size_t size, size_t* needed) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_report: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_report");
  return give_text(hang::report(engine_of(engine)), text, size, needed);
} catch (...) {
  return caught();
}

int canele_on_hang(canele_engine_t* engine, canele_hang_fn callback, void* argument) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_on_hang: engine is NULL");
  if (fork::in_child) return reject_in_child("canele_on_hang");
  Engine& e = engine_of(engine);
  e.lock_for_callback();
  e.diagnostics.hang_callback = callback;
  e.diagnostics.hang_argument = argument;
  e.unlock();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_info_json(canele_engine_t* engine, char* text, size_t size, size_t* needed) try {
  if (engine != nullptr && fork::in_child) return reject_in_child("canele_info_json");
  return give_text(to_json(info(engine != nullptr ? &engine_of(engine) : nullptr)), text, size, needed);
} catch (...) {
  return caught();
}
