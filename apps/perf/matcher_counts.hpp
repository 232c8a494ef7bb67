// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of the matches of a plan, counted: attempts, cache lines, memory. Runs on the rank that reports; one thread.
//
// The engine itself does not count, because its table has no instruction for it. The counting variant of the matcher
// repeats the operations here, in this process alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "match_plan.hpp"

namespace canele::perf {

/// Ranges of numbers, each from `least` up to the next one's `least`, and how often they occurred.
using Histogram = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

struct MatcherCounts {
  double attempts = 0, lines = 0;  ///< per match.
  double bytes = 0;                ///< per entry, of the structure without request or message, with all entries queued.
  Histogram search_length, depth;  ///< attempts of each search; entries queued at each insertion and removal.
};

/// Returns the values of CANELE_EXPERT_MATCHER.
std::vector<std::string> matchers();

/// matcher: one of the values of CANELE_EXPERT_MATCHER.
MatcherCounts count_matches(const Plan& plan, Direction direction, const std::string& matcher);

}  // namespace canele::perf
