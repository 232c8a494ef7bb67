// SPDX-License-Identifier: BSD-3-Clause
//
// Numeric settings of drivers.
//
// Called by drivers in open(), on a thread that may use the DriverContext. The settings table has already checked what
// users set. The check here serves callers that use a driver without that table, as the drivers' tests do.
#pragma once

#include <charconv>
#include <string>

#include "drivers/driver.hpp"

namespace canele::drivers::net {

/// Reads the setting `name` as a number of at least `least`. On failure returns false and sets *reason, which says what
/// is `wanted`.
inline bool read_number(DriverContext& context, const char* name, const char* fallback, int least, const char* wanted,
                        int* value, std::string* reason) {
  const std::string text = context.setting(name, fallback);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size() && *value >= least) return true;
  *reason = std::string("CANELE_") + name + " is \"" + text + "\"; expected: a number of " + wanted;
  return false;
}

}  // namespace canele::drivers::net
