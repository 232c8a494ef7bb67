// SPDX-License-Identifier: BSD-3-Clause
//
// Once: logs a line once, however often its cause recurs.
//
// Used by drivers, for messages that unauthenticated peers or a small limit can repeat without end. One thread at a
// time uses an object. The number of different lines is bounded, because unauthenticated peers choose parts of their
// text.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "drivers/driver.hpp"

namespace canele::drivers::net {

class Once {
 public:
  static constexpr std::size_t most = 32;

  void log(DriverContext& context, int level, const std::string& text) {
    if (said_.size() < most && said_.insert(text).second) context.log(level, text + " (reported once)");
  }

 private:
  std::set<std::string> said_;
};

}  // namespace canele::drivers::net
