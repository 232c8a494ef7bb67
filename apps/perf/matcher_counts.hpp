// SPDX-License-Identifier: BSD-3-Clause
//
// What the matches of a plan cost, counted: attempts, cache lines, memory.
//
// Who: match, on the rank that reports. Threads: one.
// Surprise: it is not the engine that counts. The engine's table has no instruction for it; the same operations are
// done
//     once more here, by the counting variant of the matcher, in this process alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "match_plan.hpp"

namespace canele::perf {

/// Numbers from `least` up to the next one's; how often.
using Histogram = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

struct MatcherCounts {
  double attempts = 0, lines = 0;  ///< per match
  double bytes = 0;                ///< of the structure, beside the request or message, per entry, all of them queued
  Histogram search_length, depth;  ///< attempts of each search; entries queued at each insertion and removal
};

/// matcher: one of CANELE_MATCHER's.
MatcherCounts count_matches(const Plan& plan, Direction direction, const std::string& matcher);

}  // namespace canele::perf
