// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked of a broadcast.
//
// Who: options fills it, broadcast reads it. Threads: one.
// Surprise: "sends" is no shape: it is what a program does that knows no multicast.
#pragma once

#include <string>
#include <vector>

namespace canele::perf {

struct BroadcastOptions {
  std::vector<int> destinations = {1, 3, 7};  ///< one job each
  std::vector<std::string> ways = {"sends", "auto", "flat", "chain", "binomial", "4-nomial"};
};

/// All that may be named; the place among them from "auto" on is that of enum canele_shape.
inline const std::vector<std::string> broadcast_ways = {"sends",    "auto",     "flat",    "chain",
                                                        "binomial", "4-nomial", "8-nomial"};

}  // namespace canele::perf
