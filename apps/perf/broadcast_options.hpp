// SPDX-License-Identifier: BSD-3-Clause
//
// Options of a broadcast. One thread.
//
// "sends" is not a shape: it is what a program does that has no multicast.
#pragma once

#include <string>
#include <vector>

namespace canele::perf {

struct BroadcastOptions {
  std::vector<int> destinations = {1, 3, 7};  ///< one job each
  std::vector<std::string> ways = {"sends", "auto", "flat", "chain", "binomial", "4-nomial"};
};

/// All ways that may be named. From "auto" on, the order is that of enum canele_shape.
inline const std::vector<std::string> broadcast_ways = {"sends",    "auto",     "flat",    "chain",
                                                        "binomial", "4-nomial", "8-nomial"};

}  // namespace canele::perf
