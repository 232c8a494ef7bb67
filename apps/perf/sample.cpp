// SPDX-License-Identifier: BSD-3-Clause
//
// Sampling.
//
// Both ranks follow one schedule, and rank 0's figures count. Rank 1, which may write the file of another host, gets
// them in a message.
#include "sample.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "launch.hpp"
#include "measure.hpp"
#include "sample_file.hpp"
#include "statistics.hpp"

namespace canele::perf {
namespace {

using nlohmann::json;

constexpr std::uint64_t small = 8, large = 4 << 20;
constexpr int small_window = 64, large_window = 4;
constexpr std::array<std::uint64_t, 6> sizes = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

/// One figure that is measured in every round.
struct Probe {
  std::uint64_t size;
  int window;  ///< 0: a ping-pong
  int rounds;
  Stream stream;
  std::vector<double> ns = {};  ///< per message, a value per round

  Probe(Job& job, std::uint64_t bytes, int messages, int batch)
      : size(bytes), window(messages), rounds(batch), stream(job, bytes, std::max(1, messages)) {}
  void run(Job& job) {
    ns.push_back(window == 0 ? ping_pong(job, stream, size, rounds) : one_way(job, stream, size, rounds));
  }
  std::uint64_t median_ns() const { return static_cast<std::uint64_t>(std::max(1.0, std::round(quantile(ns, 0.5)))); }
};

/// Returns the rounds of a batch: by the bytes that they move, or as the user says.
int rounds(const Options& options, std::uint64_t size, int window) {
  constexpr std::uint64_t most_bytes = 4 << 20, most_messages = 2048;
  const auto messages = static_cast<std::uint64_t>(std::max(1, window));
  const std::uint64_t wanted = options.iterations > 0 ? static_cast<std::uint64_t>(options.iterations) / messages
                                                      : std::min(most_bytes / size, most_messages) / messages;
  return static_cast<int>(std::max<std::uint64_t>(1, wanted));
}

/// Makes the probes: latency, gap, bandwidth, then one ping-pong for each size.
std::vector<Probe> make_probes(Job& job, const Options& options) {
  std::vector<Probe> probes;
  const auto add = [&](std::uint64_t size, int window) {
    probes.emplace_back(job, size, window, rounds(options, size, window));
  };
  add(small, 0);
  add(small, small_window);
  add(large, large_window);
  for (const std::uint64_t size : sizes) add(size, 0);
  return probes;
}

/// Returns today's date, UTC.
std::string date() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

/// Returns "tcp" for "tcp:eth1".
std::string name_of_driver(const std::string& driver) { return driver.substr(0, driver.find(':')); }

const json& driver_of(const json& info, const std::string& name) {
  for (const json& one : info.at("drivers")) {
    if (one.at("name") == name) return one;
  }
  throw std::runtime_error("canele_info_json knows no driver " + name);
}

/// Returns the figures of rank 0, on both ranks.
std::vector<std::uint64_t> share(Job& job, const std::vector<Probe>& probes) {
  constexpr std::uint64_t tag = 20;
  std::vector<std::uint64_t> figures;
  for (const Probe& probe : probes) figures.push_back(probe.median_ns());
  if (job.first()) {
    job.session.send(job.peer(), tag, std::span<const std::uint64_t>(figures));
  } else {
    job.session.recv(job.peer(), tag, std::span<std::uint64_t>(figures));
  }
  return figures;
}

Record record_of(const json& info, const Options& options, const std::vector<std::uint64_t>& figures) {
  const json& declared = driver_of(info, name_of_driver(options.driver)).at("capabilities");
  Record record{options.driver, date(), figures[0], figures[1]};
  record.bytes_per_second =
      static_cast<std::uint64_t>(static_cast<double>(large) * 1e9 / static_cast<double>(figures[2]));
  record.declared_latency_ns = declared.at("latency_ns");
  record.declared_bytes_per_second =
      static_cast<std::uint64_t>(std::llround(declared.at("bandwidth_bytes_per_ns").get<double>() * 1e9));
  record.times.emplace_back(small, record.latency_ns);
  for (std::size_t i = 0; i < sizes.size(); ++i) record.times.emplace_back(sizes[i], figures[3 + i]);
  return record;
}

void print(const Job& job, const json& info, const Record& record) {
  const json& declared = driver_of(info, name_of_driver(record.driver)).at("capabilities");
  fmt::print("{:<12} {:>10} {:>10} {:>10}\n", record.driver, "latency/ns", "gap/ns", "MB/s");
  fmt::print("  {:<10} {:>10} {:>10} {:>10}{}\n", "measured", record.latency_ns, record.gap_ns,
             record.bytes_per_second / 1'000'000,
             job.oversubscribed() ? "   (both ranks on one core: these figures say little)" : "");
  fmt::print("  {:<10} {:>10} {:>10} {:>10}\n", "declared", record.declared_latency_ns,
             declared.at("gap_ns").get<std::uint64_t>(), record.declared_bytes_per_second / 1'000'000);
  fmt::print("  one way, us:");
  for (const auto& [size, ns] : record.times) {
    const bool bytes = size < 1024, kib = size < 1 << 20;
    fmt::print("  {}{} {:.2f}",
               bytes ? size
               : kib ? size >> 10
                     : size >> 20,
               bytes ? " B"
               : kib ? "k"
                     : "M",
               static_cast<double>(ns) / 1e3);
  }
  fmt::print("\n");
}

/// Returns the library's report on this machine and its drivers.
json ask_library(const Job* job) {
  const json info =
      json::parse(canele::detail::text_of("canele_info_json", [&](char* text, std::size_t size, std::size_t* needed) {
        return canele_info_json(job != nullptr ? job->engine.native() : nullptr, text, size, needed);
      }));
  for (const json& one : info.at("settings")) {
    if (one.at("variable") == "CANELE_EXPERT_DECORATORS" && !one.at("value").get<std::string>().empty()) {
      throw std::runtime_error(
          "CANELE_EXPERT_DECORATORS is set, so the driver itself would not be measured; expected: unset");
    }
  }
  return info;
}

std::vector<std::string> available_drivers(const json& info) {
  std::vector<std::string> names;
  for (const json& one : info.at("drivers")) {
    const std::string name = one.at("name");
    if (name == "self") continue;  // needs two ranks
    if (one.at("available").get<bool>()) {
      names.push_back(name);
    } else {
      fmt::print("{}: not here ({})\n", name, one.at("why_not").get<std::string>());
    }
  }
  return names;
}

std::vector<std::string> arguments_for(const Options& options, const std::string& driver) {
  std::vector<std::string> arguments = {"sample", "--driver", driver, "--batches", std::to_string(options.batches)};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.insert(arguments.end(), {option, value});
  };
  if (options.iterations > 0) add("--iterations", std::to_string(options.iterations));
  for (const int core : options.cores) add("--cores", std::to_string(core));
  if (!options.pin) arguments.emplace_back("--no-pin");
  return arguments;
}

}  // namespace

int sample_each(const Options& options) {
  const json info = ask_library(nullptr);
  const std::string file = file_of(info);
  int code = 0;
  bool kept = false;
  for (const std::string& driver : options.drivers.empty() ? available_drivers(info) : options.drivers) {
    const int ended = run_job(arguments_for(options, driver));
    if (ended != 0) fmt::print(stderr, "canele-perf: {} was not measured (exit code {})\n", driver, ended);
    kept = kept || ended == 0;
    if (ended != 0) code = 1;
  }
  if (kept) fmt::print("kept in {}\n", file);
  return code;
}

std::string only_driver(const Options& options) {
  if (options.drivers.size() != 1) {
    throw std::runtime_error(
        "in a job, sample measures one driver; expected: one --driver (outside of a job it measures all)");
  }
  if (options.drivers.front().find_first_of("+ \t\n") != std::string::npos) {
    throw std::runtime_error("\"" + options.drivers.front() + "\" is not one driver; expected: shm, or tcp:eth1");
  }
  return options.drivers.front();
}

void sample(Job& job, const Options& options) {
  std::vector<Probe> probes = make_probes(job, options);
  for (Probe& probe : probes) probe.run(job);  // warm-up: connects, maps, fills caches
  for (Probe& probe : probes) probe.ns.clear();
  for (int round = 0; round < options.batches; ++round) {
    for (Probe& probe : probes) probe.run(job);
  }
  if (job.driver() != name_of_driver(options.driver)) {
    throw std::runtime_error("driver " + options.driver + " was requested, but \"" + job.driver() +
                             "\" carries the messages");
  }
  const json info = ask_library(&job);
  const Record record = record_of(info, options, share(job, probes));
  if (job.engine.local_rank() == 0) write_sample(info, record);
  if (job.first()) print(job, info, record);
  job.session.barrier();
}

}  // namespace canele::perf
