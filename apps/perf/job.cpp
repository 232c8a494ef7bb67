// SPDX-License-Identifier: BSD-3-Clause
//
// Job: joining, pinning, and finding out which driver is in use.
//
// Only this thread is pinned. The library's own threads stay where the library puts them, as in any program.
#include "job.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "pin.hpp"

namespace canele::perf {
namespace {

std::vector<std::string> with_driver(std::vector<std::string> settings, const std::string& driver) {
  if (!driver.empty()) settings.push_back("CANELE_DRIVERS=" + driver);
  return settings;
}

/// Pins the calling thread. Returns the core.
int pin_rank(const std::vector<int>& cores, int local_rank) {
  if (cores.empty()) throw std::runtime_error("cannot find out which cores this process may use");
  const int core = cores[static_cast<std::size_t>(local_rank) % cores.size()];
  pin_thread({core});
  return core;
}

}  // namespace

Job::Job(const Options& options, std::vector<std::string> settings)
    : engine(join(with_driver(std::move(settings), options.driver))),
      session(engine, "canele-perf"),
      rank_(engine.rank()) {
  if (engine.size() != 2) {
    throw std::runtime_error("this job has " + std::to_string(engine.size()) + " ranks; expected: two");
  }
}

void Job::pin(const Options& options) {
  int own = -1;
  if (options.pin) own = pin_rank(options.cores.empty() ? allowed_cores() : options.cores, engine.local_rank());
  auto received = session.irecv(peer(), 1, canele::one(cores_[peer()]));
  session.send(peer(), 1, canele::one(own));
  received.wait();
  cores_[engine.rank()] = own;
  oversubscribed_ = same_host() && (cores_[0] == cores_[1] || own < 0);
}

std::string Job::driver() const {
  const auto counters = nlohmann::json::parse(engine.counters_json());
  for (const auto& one : counters.at("peers")) {
    if (one.at("rank") == peer()) return one.at("driver").get<std::string>();
  }
  return {};
}

void check_driver(const Options& options, const std::string& driver) {
  if (options.driver.empty() || options.driver.find(',') != std::string::npos || driver == options.driver) return;
  throw std::runtime_error("driver " + options.driver + " was requested, but \"" + driver + "\" carries the messages");
}

canele::engine join(const std::vector<std::string>& settings) {
  std::vector<const char*> texts;
  for (const std::string& setting : settings) texts.push_back(setting.c_str());
  return canele::engine(std::span<const char* const>(texts));
}

}  // namespace canele::perf
