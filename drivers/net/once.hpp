// SPDX-License-Identifier: BSD-3-Clause
//
// Once: says a line once, however often its cause comes back.
//
// Who: drivers, for what strangers or a small limit can repeat without end. Threads: one at a time.
// Surprise: only so many different lines are said, because strangers choose some of their words.
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
    if (said_.size() < most && said_.insert(text).second) context.log(level, text + " (said once)");
  }

 private:
  std::set<std::string> said_;
};

}  // namespace canele::drivers::net
