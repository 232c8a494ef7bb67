// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of the settings at the start.
#include "comm/api/start_checks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "comm/collectives/override.hpp"
#include "comm/observe/report.hpp"
#include "comm/registry/registry.hpp"
#include "ltask/topology.hpp"

namespace canele::comm::api {
namespace {

namespace fs = std::filesystem;

constexpr Setting written_at_the_end[] = {Setting::counters, Setting::profile, Setting::trace};

std::string named(const Settings& settings, Setting setting) {
  return "CANELE_" + std::string(Settings::info(setting).name) + "=\"" + settings.text(setting) + "\"";
}

bool is_a_directory(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

/// Returns why a file that is written at the end cannot be written, or "". A job of hours must not find that out at its
/// end.
std::string unwritable(const Settings& settings, Setting setting) {
  const std::string& pattern = settings.text(setting);
  if (pattern.empty() || pattern == "-") return {};
  const fs::path file(file_of_rank(pattern, 0));
  if (is_a_directory(file)) return named(settings, setting) + " is a directory; expected: a file in it";
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code none;
  if (!fs::exists(directory, none))
    return named(settings, setting) + ": there is no directory " + directory.string() +
           "; make it before the job starts";
  const bool file_there = fs::exists(file, none);
  const bool regular = !file_there || fs::is_regular_file(file, none);
  if (access(regular ? directory.c_str() : file.c_str(), W_OK) == 0) return {};
  return named(settings, setting) + " cannot be written: " + std::strerror(errno);
}

std::string wrong_core(const Settings& settings) {
  const std::string& core = settings.text(Setting::worker_core);
  if (core == "auto") return {};
  const int index = static_cast<int>(std::min(settings.number(Setting::worker_core), std::uint64_t{1} << 30));
  const ltask::Topology topology;
  if (topology.os_index(ltask::UnitIndex::logical, index)) return {};
  return named(settings, Setting::worker_core) +
         ": this machine has no such processing unit; expected: a logical index of hwloc";
}

/// Returns a warning if the limit exceeds the machine's memory, and so limits nothing; else "".
std::string too_much_memory(const Settings& settings) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return {};
  const auto there = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  if (settings.number(Setting::unexpected_memory) <= there) return {};
  return named(settings, Setting::unexpected_memory) + " is more than this machine's memory, " +
         std::to_string(there >> 20) + "M: unexpected messages may exhaust it";
}

}  // namespace

std::string read_options(const canele_options_t* options, std::vector<std::string>* overrides) {
  if (options == nullptr) return {};
  if (options->struct_size < sizeof(canele_options_t))
    return "canele_init: options->struct_size is " + std::to_string(options->struct_size) +
           "; expected: sizeof(canele_options_t) = " + std::to_string(sizeof(canele_options_t));
  if (options->settings == nullptr && options->settings_count > 0)
    return "canele_init: options->settings is NULL, but settings_count is " + std::to_string(options->settings_count);
  for (size_t i = 0; i < options->settings_count; ++i) {
    if (options->settings[i] == nullptr)
      return "canele_init: options->settings[" + std::to_string(i) + "] is NULL; expected: \"NAME=value\"";
    overrides->emplace_back(options->settings[i]);
  }
  return {};
}

std::string wrong_setting(const Settings& settings) {
  std::string why;
  collectives::AlgorithmOverrides overrides;
  if (!collectives::parse_overrides(settings.text(Setting::collectives), &overrides, &why)) return why;
  if (find_strategy(settings.text(Setting::strategy)) == nullptr)
    return named(settings, Setting::strategy) + ": no such strategy";
  if (const std::string& list = settings.text(Setting::decorators);
      !list.empty() && decorate(list, find_driver("self")->create(), &why) == nullptr)
    return named(settings, Setting::decorators) + ": " + why;
  for (const Setting setting : written_at_the_end) {
    why = unwritable(settings, setting);
    if (!why.empty()) return why;
  }
  return wrong_core(settings);
}

void warn_of_settings(Engine& engine) {
  const Settings& settings = *engine.lifecycle.settings;
  if (engine.rank == 0) {
    for (const std::string& text : settings.warnings()) engine.log(LogLevel::warning, text);
    for (const std::string& text : settings.notes()) engine.log(LogLevel::info, text);
    for (const Setting setting : written_at_the_end) {
      const std::string& file = settings.text(setting);
      if (engine.size == 1 || file.empty() || file == "-" || file.find("%r") != std::string::npos) continue;
      std::error_code none;
      // A pipe accepts the output of all ranks.
      if (fs::exists(file, none) && !fs::is_regular_file(file, none)) continue;
      engine.log(
          LogLevel::warning,
          named(settings, setting) + ": all " + std::to_string(engine.size) +
              " ranks write to this one file, and the last one wins; expected: %r in the name, which becomes the rank");
    }
  }
  if (engine.lifecycle.bootstrap->local_rank() != 0) return;
  if (const std::string text = too_much_memory(settings); !text.empty()) engine.log(LogLevel::warning, text);
  const std::string& samples = settings.text(Setting::samples);
  if (!samples.empty() && samples != "off" && !is_a_directory(samples))
    engine.log(LogLevel::warning, named(settings, Setting::samples) + ": there is no such directory");
  for (std::string_view rest = settings.text(Setting::driver_path); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view one = rest.substr(0, end);
    if (!one.empty() && !is_a_directory(one))
      engine.log(LogLevel::warning,
                 named(settings, Setting::driver_path) + ": there is no directory " + std::string(one));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace canele::comm::api
