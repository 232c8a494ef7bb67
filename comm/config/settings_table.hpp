// SPDX-License-Identifier: BSD-3-Clause
//
// A row of the table of settings.
//
// Constants for any thread, used by settings.cpp and the table itself. A default is text, like a value that a user
// gives.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "comm/config/settings.hpp"

namespace canele::comm {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

enum class SettingKind : std::uint8_t { choice, drivers, number, size, text, fault };

struct SettingEntry {
  SettingInfo info;
  SettingKind kind;
  bool may_be_auto = false;
  std::uint64_t least = 0;
  std::uint64_t most = unlimited;
  std::string_view words = {};  ///< choice: the allowed values
};

extern const std::array<SettingEntry, static_cast<int>(Setting::count)> settings_table;

}  // namespace canele::comm
