// SPDX-License-Identifier: BSD-3-Clause
//
// Settings from the environment and the options of canele_init; the lists of drivers and decorators that they name.
//
// A line of the input is one assignment; a small letter at its beginning selects a known name.
#include "comm/config/settings.hpp"
#include "comm/registry/modules.hpp"
#include "comm/registry/registry.hpp"
#include "wire_driver.hpp"

namespace canele::fuzz {
namespace {

using comm::Setting;
using comm::Settings;

constexpr int count = static_cast<int>(Setting::count);

/// Returns whether the setting is a number.
bool is_number(Setting setting) {
  switch (setting) {
    case Setting::worker_core:
    case Setting::eager_limit:
    case Setting::spin:
    case Setting::start_timeout:
    case Setting::finalize_timeout:
    case Setting::verbose:
    case Setting::tcp_port:
    case Setting::tcp_peer_timeout:
    case Setting::tcp_send_buffer:
    case Setting::ofi_peer_timeout:
    case Setting::hang_report:
      return true;
    default:
      return false;
  }
}

/// Returns the assignment of a line: "cvalue" sets the third setting; any other line is taken as it is.
std::string assignment(const std::string& line) {
  if (line.empty() || line[0] < 'a' || line[0] > 'z') return line;
  return "CANELE_" + std::string(Settings::info(static_cast<Setting>((line[0] - 'a') % count)).name) + "=" +
         line.substr(1);
}

void check_drivers(const Settings& settings) {
  std::vector<comm::DriverChoice> chosen;
  std::string why;
  const std::string& list = settings.text(Setting::drivers);
  if (!comm::choose_drivers(list, "", &chosen, &why)) {
    FUZZ_CHECK(!why.empty());
    return;
  }
  FUZZ_CHECK(!chosen.empty() && chosen[0].factory->name == "self" && !chosen[0].with_previous);
  for (const comm::DriverChoice& one : chosen) {
    FUZZ_CHECK(list.find(one.factory->name) != std::string::npos || one.factory->name == "self");
    FUZZ_CHECK(list.find(one.argument) != std::string::npos);
  }
}

void check_decorators(const Settings& settings) {
  std::string why;
  const auto driver = comm::decorate(settings.text(Setting::decorators), wire_factory(Like::tcp).create(), &why);
  FUZZ_CHECK((driver != nullptr) == why.empty());
  made().clear();
}

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace canele::fuzz;
  Input input(data, size);
  FuzzPlatform platform;
  std::vector<std::string> overrides;
  const std::string all = input.text(input.left());
  for (std::size_t at = 0, end; at < all.size(); at = end + 1) {
    end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    if (line.starts_with('!')) {
      overrides.push_back(assignment(line.substr(1)));
    } else if (const std::string one = assignment(line); one.find('=') != std::string::npos) {
      platform.environment.emplace(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
    }
  }
  const Settings settings(platform, overrides);
  for (int i = 0; i < count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const std::string& value = settings.text(setting);
    FUZZ_CHECK(settings.by_name(Settings::info(setting).name, "x") == value);
    if (is_number(setting)) FUZZ_CHECK(settings.number(setting, 7) == 7 || value != "auto");
    if (settings.source(setting) == canele::comm::Source::fallback)
      FUZZ_CHECK(value == Settings::info(setting).fallback);
  }
  for (const auto& [name, value] : platform.environment) settings.by_name(name, value);
  // Accepted options are accepted again, without any complaint.
  std::vector<std::string> again;
  for (int i = 0; i < count; ++i) {
    const auto setting = static_cast<Setting>(i);
    again.push_back("CANELE_" + std::string(Settings::info(setting).name) + "=" + settings.text(setting));
  }
  FuzzPlatform empty;
  const Settings same(empty, again);
  FUZZ_CHECK(same.error().empty());
  for (int i = 0; i < count; ++i)
    FUZZ_CHECK(same.text(static_cast<Setting>(i)) == settings.text(static_cast<Setting>(i)));
  check_drivers(settings);
  check_decorators(settings);
  return 0;
}
