// SPDX-License-Identifier: BSD-3-Clause
//
// Time per message while N receives, or N messages, wait to be matched.
//
// Who: main, on both ranks. Rank 0 receives, measures and reports; rank 1 sends. Threads: the main thread.
// Surprise: only the phase in which messages match is timed. Posted: from the word that all receives are there until
//     all have completed; the word's and the first message's latency are in it, which shows at N = 16. Unexpected:
//     posting and completing all receives, with every message here already.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"
#include "match_plan.hpp"
#include "matcher_counts.hpp"
#include "options.hpp"

namespace canele::perf {

struct MatchResult {
  Direction direction;
  Order order;
  std::uint64_t receives = 0;
  std::uint64_t rounds = 0;           ///< in one batch
  std::vector<double> ns = {};        ///< per message, one per batch
  std::vector<double> floor_ns = {};  ///< the same of match_floor.hpp, batch by batch in turn
  std::uint64_t stalls = 0;           ///< sends that had to wait for credit, of all that were sent
  std::uint64_t sent = 0;
  MatcherCounts counts = {};
};

struct MatchResults {
  std::string driver, matcher;
  std::string unexpected_memory;  ///< the setting's value
  std::vector<MatchResult> cases;
};

/// Settings of the engine that such a run needs: the matcher, and room for all messages that will be unexpected.
std::vector<std::string> match_settings(const Options& options);

/// Throws if a message went to a wrong receive, or another driver than asked for carried them.
MatchResults match(Job& job, const Options& options);

/// To stdout; rank 0 only.
void print_match(const Job& job, const Options& options, const MatchResults& results);

}  // namespace canele::perf
