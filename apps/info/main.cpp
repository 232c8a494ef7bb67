// SPDX-License-Identifier: BSD-3-Clause
//
// canele-info: what this build can do on this machine, and what every setting is and does.
//
// For users, and for scripts with --json. One thread. It never starts an engine, so it works outside a job, and it
// shows where the worker *would* run.
#include <canele/canele.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

using nlohmann::json;

/// Returns the library's whole report, or throws an exception that names the call. Calls the library once if possible,
/// because each call reads the environment and warns of unknown variables again.
std::string ask_library() {
  std::string text(256 * 1024, '\0');
  std::size_t needed = 0;
  int code = canele_info_json(nullptr, text.data(), text.size(), &needed);
  if (code == CANELE_ENOMEM && needed > text.size()) {
    text.resize(needed);
    code = canele_info_json(nullptr, text.data(), text.size(), &needed);
  }
  if (code != CANELE_OK) {
    throw std::runtime_error(fmt::format("canele_info_json: {}: {}", canele_error_string(code), canele_error_detail()));
  }
  text.resize(needed - 1);
  return text;
}

std::string text_of(const json& object, const char* key) { return object.at(key).get<std::string>(); }

/// Wraps `text` into lines of at most `width` columns. All lines but the first are indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::size_t length = space - at;
    if (column > indent && column + 1 + length > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, length);
    column += length;
    at = space + 1;
  }
  return out;
}

void print_build(const json& info) {
  const json& build = info.at("build");
  const std::string sanitizer = text_of(build, "sanitizer");
  fmt::print("Canelé {} (ABI {})\n", text_of(info, "canele"), info.at("abi").get<int>());
  fmt::print("build      {}, {}, assertions {}{}\n", text_of(build, "compiler"), text_of(build, "processor"),
             build.at("assertions").get<bool>() ? "on" : "off", sanitizer.empty() ? "" : ", sanitizer " + sanitizer);
}

void print_machine(const json& info) {
  const json& machine = info.at("topology");
  const std::string problem = text_of(machine, "problem");
  if (problem.empty()) {
    fmt::print("machine    {}; this process may use PUs {}\n", text_of(machine, "summary"),
               text_of(machine, "process_units"));
  } else {
    fmt::print("machine    unknown: {}\n", problem);
  }
  fmt::print("worker     {}\n", text_of(info.at("worker"), "place"));
}

/// Prints what a driver declares: numbers with their names, then the names of the capabilities that it has and lacks.
void print_capabilities(const json& capabilities) {
  std::string numbers, has, lacks;
  for (const auto& [name, value] : capabilities.items()) {
    if (value.is_boolean()) {
      (value.get<bool>() ? has : lacks) += (value.get<bool>() ? has : lacks).empty() ? name : ", " + name;
    } else {
      numbers += fmt::format("{}{} {}", numbers.empty() ? "" : ", ", name,
                             value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  for (const auto& [what, text] : {std::pair{"has", has}, std::pair{"lacks", lacks}, std::pair{"", numbers}}) {
    fmt::print("  {:<15} {:<6} {}\n", "", what, wrapped(text, 24, 110));
  }
}

std::string text_of_costs(std::uint64_t latency_ns, std::uint64_t gap_ns, double bytes_per_second) {
  return fmt::format("latency {} ns, gap {} ns, {:.0f} MB/s", latency_ns, gap_ns, bytes_per_second / 1e6);
}

/// Prints the costs that the engine assumes for a driver, and their source.
void print_costs(const json& info, const json& driver) {
  const json& costs = driver.at("costs");
  const json& declares = driver.at("capabilities");
  const std::string declared = text_of_costs(declares.at("latency_ns"), declares.at("gap_ns"),
                                             declares.at("bandwidth_bytes_per_ns").get<double>() * 1e9);
  std::string text = "declared: " + declared;
  if (costs.at("measured").get<bool>()) {
    std::string date;
    for (const json& one : info.at("samples").at("drivers")) {
      if (one.at("name") == driver.at("name")) date = text_of(one, "date");
    }
    text = fmt::format(
        "measured {}: {} (declared: {})", date,
        text_of_costs(costs.at("latency_ns"), costs.at("gap_ns"), costs.at("bytes_per_second").get<double>()),
        declared);
  }
  fmt::print("  {:<15} {:<6} {}\n", "", "costs", wrapped(text, 24, 110));
}

/// Prints the state of the file of measured costs: which drivers it covers, or why it is not used.
void print_samples(const json& info) {
  const json& samples = info.at("samples");
  const std::string state = text_of(samples, "state"), problem = text_of(samples, "problem");
  std::string text;
  for (const json& one : samples.at("drivers")) text += (text.empty() ? "" : ", ") + text_of(one, "name");
  if (state == "off") text = "not looked for: CANELE_SAMPLES=off, or neither HOME nor XDG_CACHE_HOME is set";
  if (state == "absent") text = "not there; canele-perf sample writes it";
  if (state == "stale" || state == "refused") text = "ignored";
  if (!problem.empty()) text += (text.empty() ? "" : "; ") + problem;
  const std::string file = text_of(samples, "file");
  fmt::print("\nsamples    {}{}\n", file.empty() ? "" : file + ": ", text);
}

void print_drivers(const json& info, bool capabilities) {
  fmt::print("\ndrivers\n");
  for (const json& driver : info.at("drivers")) {
    const bool available = driver.at("available").get<bool>();
    fmt::print("  {:<10} {:<4} {}\n", text_of(driver, "name"), available ? "yes" : "no", text_of(driver, "summary"));
    if (!available) fmt::print("  {:<10} {:<4} why not: {}\n", "", "", wrapped(text_of(driver, "why_not"), 26, 110));
    if (available && capabilities) print_capabilities(driver.at("capabilities"));
    if (available && capabilities) print_costs(info, driver);
  }
  if (capabilities) print_samples(info);
}

/// Prints the addresses under which other hosts reach ranks of this one, in the order in which they are tried.
void print_network(const json& info) {
  for (const json& driver : info.at("drivers")) {
    if (driver.at("network").empty()) continue;
    fmt::print("\naddresses of the driver {}, in the order in which other hosts try them\n", text_of(driver, "name"));
    for (const json& one : driver.at("network")) {
      const auto speed = one.at("speed_mbps").get<unsigned>();
      const bool carrier = one.at("carrier").get<bool>();
      fmt::print("  {:<12} {:<28} {}{}{}\n", text_of(one, "interface"), text_of(one, "address"), text_of(one, "kind"),
                 speed == 0 ? "" : fmt::format(", {} Mbit/s", speed), carrier ? "" : ", link is down");
    }
  }
}

void print_strategies(const json& info) {
  fmt::print("\nstrategies\n");
  for (const json& strategy : info.at("strategies")) {
    fmt::print("  {:<10} {}\n", text_of(strategy, "name"), text_of(strategy, "summary"));
  }
}

void print_setting(const json& one) {
  const std::string unit = text_of(one, "unit"), value = text_of(one, "value");
  const std::string fallback = text_of(one, "default"), alias = text_of(one, "alias");
  fmt::print("  {} = {}{}{}\n", text_of(one, "variable"), value.empty() ? "\"\"" : value,
             unit.empty() ? "" : " " + unit,
             one.at("source") == "default" ? "" : "   (from the " + text_of(one, "source") + ")");
  fmt::print("      values: {}; default: {}{}\n", text_of(one, "values"), fallback.empty() ? "\"\"" : fallback,
             alias.empty() ? "" : "; old name: " + alias);
  fmt::print("      {}\n", wrapped(text_of(one, "help"), 6, 110));
}

/// Prints the settings for users, then those for experts.
void print_settings(const json& info) {
  for (const bool expert : {false, true}) {
    fmt::print("{}", expert ? "\nexpert settings, for developers and experiments\n"
                            : "\nsettings (environment variables; the options of canele_init win over them)\n");
    for (const json& one : info.at("settings")) {
      if (text_of(one, "variable").starts_with("CANELE_EXPERT_") == expert) print_setting(one);
    }
  }
}

/// What to print.
enum class Part { everything, as_json, drivers, network };

int run(Part part) {
  const std::string text = ask_library();
  const json info = json::parse(text);
  const std::string error = text_of(info, "settings_error");
  switch (part) {
    case Part::as_json:
      fmt::print("{}\n", text);
      break;
    case Part::drivers:
      print_drivers(info, true);
      break;
    case Part::network:
      print_network(info);
      break;
    case Part::everything:
      print_build(info);
      print_machine(info);
      print_drivers(info, false);
      print_strategies(info);
      print_settings(info);
      break;
  }
  if (error.empty()) return 0;
  fmt::print(stderr, "canele-info: a program would not start here: {}\n", error);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Shows what this build of Canelé can do on this machine, and its settings."};
  bool as_json = false, only_drivers = false, only_network = false;
  app.add_flag("--json", as_json, "Print JSON, for scripts");
  app.add_flag("--drivers", only_drivers, "Only the drivers, each with its capabilities and costs");
  app.add_flag("--network", only_network, "Only the addresses of this host, in the order of the attempts");
  app.set_version_flag("--version", canele_version());
  CLI11_PARSE(app, argc, argv);
  try {
    if (as_json) return run(Part::as_json);
    if (only_drivers) return run(Part::drivers);
    return run(only_network ? Part::network : Part::everything);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "canele-info: {}\n", problem.what());
    return 2;
  }
}
