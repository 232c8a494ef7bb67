// SPDX-License-Identifier: BSD-3-Clause
//
// Reports: the JSON of counters and info, and the files of CANELE_COUNTERS and CANELE_TRACE. No build date or host is
// recorded, so that builds are reproducible bit by bit.
#include "comm/observe/report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "comm/config/names.hpp"
#include "comm/observe/json.hpp"
#include "ltask/write_quietly.hpp"

namespace canele::comm {
namespace {

/// Writes the values of the first counters, or of all of them, under every name, the deprecated ones included.
void write_counter_values(JsonWriter& json, const std::vector<std::uint64_t>& values) {
  assert(values.size() <= static_cast<std::size_t>(Counter::count));
  json.begin_object();
  for (int i = 0; i < counter_names; ++i) {
    const auto counter = static_cast<std::size_t>(counter_of_name(i));
    if (counter < values.size()) json.field(counter_name(i).name, values[counter]);
  }
  json.end_object();
}

void write_driver_counters(JsonWriter& json, const CountersReport::OneDriver& driver) {
  const auto& c = driver.counters;
  json.begin_object().field("name", driver.name);
  const std::pair<const char*, std::uint64_t> fields[] = {{"packets_sent", c.packets_sent},
                                                          {"packets_received", c.packets_received},
                                                          {"bytes_sent", c.bytes_sent},
                                                          {"bytes_received", c.bytes_received},
                                                          {"full", c.full},
                                                          {"bulk_bytes_sent", c.bulk_bytes_sent},
                                                          {"bulk_bytes_received", c.bulk_bytes_received}};
  for (const auto& [name, value] : fields) json.field(name, value);
  json.field("polls", driver.polls).end_object();
}

std::string_view wake_up_name(drivers::WakeUp wake_up) {
  switch (wake_up) {
    case drivers::WakeUp::descriptor:
      return "descriptor";
    case drivers::WakeUp::doorbell:
      return "doorbell";
    case drivers::WakeUp::none:
      return "none";
  }
  return "none";
}

void write_capabilities(JsonWriter& json, const drivers::Capabilities& c) {
  json.begin_object();
  json.field("max_inline", c.max_inline).field("max_packet", c.max_packet).field("memory_only", c.memory_only);
  json.field("reserves", c.reserves).field("bulk_stream", c.bulk_stream).field("get", c.get);
  json.field("put", c.put).field("copies_anywhere", c.rma_any_thread).field("shared_lines", c.shared_lines);
  json.field("max_bulk", c.max_bulk);
  json.field("wake_up", wake_up_name(c.wake_up)).field("reaches_self", c.reaches_self);
  json.field("reaches_local", c.reaches_local).field("reaches_remote", c.reaches_remote);
  json.field("detects_failure", c.detects_failure).field("max_instances", c.max_instances);
  json.field("latency_ns", c.latency_ns).field("gap_ns", c.gap_ns).field("bandwidth_bytes_per_ns", c.bandwidth);
  json.end_object();
}

void write_costs(JsonWriter& json, const strategies::Costs& costs) {
  json.field("measured", costs.measured).field("latency_ns", costs.latency_ns).field("gap_ns", costs.gap_ns);
  json.field("bytes_per_second", costs.bytes_per_second).key("times").begin_array();
  for (const auto& [size, ns] : costs.times) json.begin_array().value(size).value(ns).end_array();
  json.end_array();
}

void write_samples(JsonWriter& json, const Samples& samples) {
  json.key("samples").begin_object().field("file", samples.file).field("host", samples.host);
  json.field("machine", samples.machine).field("state", name_of(samples.state)).field("problem", samples.problem);
  json.key("drivers").begin_array();
  for (const Sample& one : samples.all) {
    json.begin_object().field("name", one.driver).field("date", one.date);
    json.field("declared_latency_ns", one.declared_latency_ns);
    json.field("declared_bytes_per_second", one.declared_bytes_per_second);
    write_costs(json, one.costs);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_network(JsonWriter& json, const std::vector<drivers::NetworkAddress>& all) {
  json.key("network").begin_array();
  for (const drivers::NetworkAddress& one : all) {
    json.begin_object().field("interface", one.interface).field("address", one.address).field("kind", one.kind);
    json.field("carrier", one.carrier).field("speed_mbps", std::uint64_t{one.speed}).end_object();
  }
  json.end_array();
}

void write_drivers(JsonWriter& json, const std::vector<InfoReport::OneDriver>& all) {
  json.key("drivers").begin_array();
  for (const auto& driver : all) {
    json.begin_object().field("name", driver.name).field("summary", driver.summary);
    json.field("available", driver.unavailable.empty()).field("why_not", driver.unavailable);
    json.field("open", driver.open);
    if (driver.unavailable.empty()) {
      json.key("capabilities");
      write_capabilities(json, driver.capabilities);
      json.key("costs").begin_object();
      write_costs(json, driver.costs);
      json.end_object();
    }
    write_network(json, driver.network);
    json.end_object();
  }
  json.end_array();
}

void write_settings(JsonWriter& json, const std::vector<InfoReport::OneSetting>& settings) {
  json.key("settings").begin_array();
  for (const auto& one : settings) {
    json.begin_object().field("variable", one.variable).field("alias", one.alias).field("value", one.value);
    json.field("source", one.source);
    json.field("default", one.fallback).field("unit", one.unit).field("values", one.values).field("help", one.help);
    json.end_object();
  }
  json.end_array();
}

void write_build(JsonWriter& json) {
  json.key("build").begin_object();
#if defined(__clang__)
  json.field("compiler", "clang " __clang_version__);
#else
  json.field("compiler", "g++ " __VERSION__);
#endif
  json.field("cplusplus", static_cast<long>(__cplusplus));
#ifdef NDEBUG
  json.field("assertions", false);
#else
  json.field("assertions", true);
#endif
#if defined(__SANITIZE_ADDRESS__)
  json.field("sanitizer", "address");
#elif defined(__SANITIZE_THREAD__)
  json.field("sanitizer", "thread");
#else
  json.field("sanitizer", "");
#endif
#if defined(__x86_64__)
  json.field("processor", "x86_64");
#elif defined(__aarch64__)
  json.field("processor", "aarch64");
#else
  json.field("processor", "other");
#endif
  json.end_object();
}

std::string_view source_name(Source source) {
  switch (source) {
    case Source::fallback:
      return "default";
    case Source::environment:
      return "environment";
    case Source::options:
      return "options";
  }
  return "default";
}

/// Writes all of `text` and closes the file. Returns "" or the reason of a failure. If `descriptor` < 0, errno has the
/// reason.
std::string write_and_close(int descriptor, std::string_view text) {
  if (descriptor < 0) return std::strerror(errno);
  const int error = ltask::write_quietly(descriptor, text);
  const bool closed = close(descriptor) == 0;  // a full disk may be reported only here
  return error != 0 ? std::strerror(error) : closed ? "" : std::strerror(errno);
}

/// Creates a new file beside `file`, to which no other process writes, and returns its name. Negative: errno has the
/// reason.
int make_temporary(const std::string& file, std::string* name) {
  constexpr int most = 10'000;
  int descriptor = -1;
  for (int i = 0; i < most; ++i) {
    *name = file + ".new" + std::to_string(i);
    descriptor = open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) break;
  }
  return descriptor;
}

std::string complain(std::string_view what, const std::string& file, const std::string& why) {
  return why.empty() ? "" : "cannot write " + std::string(what) + " to \"" + file + "\": " + why;
}

}  // namespace

std::string to_json(const CountersReport& report) {
  JsonWriter json;
  json.begin_object().field("canele", report.version).field("rank", report.rank).field("size", report.size);
  json.key("counters");
  write_counter_values(json, report.counters);
  json.key("peers").begin_array();
  for (const auto& peer : report.peers) {
    json.begin_object().field("rank", peer.rank).field("driver", peer.driver).key("counters");
    write_counter_values(json, peer.counters);
    json.end_object();
  }
  json.end_array().key("drivers").begin_array();
  for (const auto& driver : report.drivers) write_driver_counters(json, driver);
  json.end_array().end_object();
  return std::move(json).finish();
}

std::string to_json(const InfoReport& report) {
  JsonWriter json;
  json.begin_object().field("canele", report.version).field("abi", report.abi);
  write_build(json);
  if (report.has_engine) {
    json.key("job").begin_object().field("rank", report.job.rank).field("size", report.job.size);
    json.field("bootstrap", report.job.bootstrap).field("host", report.job.host).end_object();
  }
  write_drivers(json, report.drivers);
  write_samples(json, report.samples);
  json.key("strategies").begin_array();
  for (const auto& strategy : report.strategies) {
    json.begin_object().field("name", strategy.name).field("summary", strategy.summary).end_object();
  }
  json.end_array();
  write_settings(json, report.settings);
  json.field("settings_error", report.settings_error);
  json.key("topology").begin_object().field("summary", report.topology.summary);
  json.field("problem", report.topology.problem).field("process_units", report.topology.process_units);
  json.field("units", report.topology.units).end_object();
  json.key("worker").begin_object().field("active", report.worker.active).field("place", report.worker.place);
  json.end_object().end_object();
  return std::move(json).finish();
}

std::vector<InfoReport::OneSetting> describe(const Settings& settings) {
  std::vector<InfoReport::OneSetting> all;
  for (int i = 0; i < static_cast<int>(Setting::count); ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingInfo& info = Settings::info(setting);
    const std::string alias = info.alias.empty() ? "" : "CANELE_" + std::string(info.alias);
    all.push_back({"CANELE_" + std::string(info.name), alias, settings.text(setting),
                   std::string(source_name(settings.source(setting))), std::string(info.fallback),
                   std::string(info.unit), std::string(info.values), std::string(info.help)});
  }
  return all;
}

std::string file_of_rank(std::string_view pattern, int rank) {
  std::string name;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at, 2) == "%r") {
      name += std::to_string(rank);
      ++at;
    } else {
      name += pattern[at];
    }
  }
  return name;
}

std::string write_json(const std::string& file, std::string_view json, std::string_view what) {
  const std::string text = std::string(json) + "\n";
  if (file == "-") {
    ltask::write_quietly(STDERR_FILENO, text);
    return {};
  }
  // A device or pipe (/dev/null, >(jq .)) is written to, never replaced by a regular file.
  struct stat target;
  if (stat(file.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    return complain(what, file, write_and_close(open(file.c_str(), O_WRONLY | O_CLOEXEC), text));
  }
  // Next to the target: rename() does not work across file systems.
  std::string temporary;
  const int made = make_temporary(file, &temporary);
  std::string why = write_and_close(made, text);
  if (why.empty() && rename(temporary.c_str(), file.c_str()) != 0) why = std::strerror(errno);
  if (!why.empty() && made >= 0) unlink(temporary.c_str());
  return complain(what, file, why);
}

bool copy_text(std::string_view json, char* out, std::size_t size, std::size_t* needed) {
  if (needed != nullptr) *needed = json.size() + 1;
  if (size == 0) return false;
  assert(out != nullptr);
  const std::size_t length = json.size() < size ? json.size() : size - 1;
  std::memcpy(out, json.data(), length);
  out[length] = '\0';
  return length == json.size();
}

}  // namespace canele::comm
