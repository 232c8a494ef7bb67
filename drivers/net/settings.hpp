// SPDX-License-Identifier: BSD-3-Clause
//
// Settings of drivers that are numbers.
//
// Who: drivers, in open(). Threads: as the DriverContext.
// Surprise: the settings table has checked what users set; this is for who drives a driver without it, as its tests do.
#pragma once

#include <charconv>
#include <string>

#include "drivers/driver.hpp"

namespace canele::drivers::net {

/// The setting `name` as a number of at least `least`. False and *reason, which says what is `wanted`.
inline bool read_number(DriverContext& context, const char* name, const char* fallback, int least, const char* wanted,
                        int* value, std::string* reason) {
  const std::string text = context.setting(name, fallback);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size() && *value >= least) return true;
  *reason = std::string("CANELE_") + name + " is \"" + text + "\"; wanted is a number of " + wanted;
  return false;
}

}  // namespace canele::drivers::net
