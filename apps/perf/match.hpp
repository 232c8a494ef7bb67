// SPDX-License-Identifier: BSD-3-Clause
//
// Match: time per message while N receives, or N messages, wait to be matched.
//
// Runs on both ranks: rank 0 receives, measures and reports; rank 1 sends. Threads: the main thread. Only the phase in
// which messages match is timed. Posted: from the word that all receives are posted until all have completed. This
// includes the latency of the word and of the first message, which is visible at N = 16. Unexpected: posting and
// completing all receives, after every message has arrived.
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
  std::uint64_t rounds = 0;           ///< in one batch.
  std::vector<double> ns = {};        ///< per message, one per batch.
  std::vector<double> floor_ns = {};  ///< as `ns`, of match_floor.hpp; batches take turns.
  std::uint64_t stalls = 0;           ///< sends that had to wait for credit, of all that were sent.
  std::uint64_t sent = 0;
  MatcherCounts counts = {};
};

struct MatchResults {
  std::string driver, matcher;
  std::string unexpected_memory;  ///< the setting's value
  std::vector<MatchResult> cases;
};

/// Returns the settings of the engine that such a run needs: the matcher, and memory for all messages that will be
/// unexpected.
std::vector<std::string> match_settings(const Options& options);

/// Measures. Throws if a message went to a wrong receive, or another driver than requested carried it.
MatchResults match(Job& job, const Options& options);

/// Runs a job for each matcher, with these arguments of canele-perf. Returns the exit code: 1 if one has failed.
int match_each(const std::vector<std::string>& arguments);

/// Prints to stdout; rank 0 only.
void print_match(const Job& job, const Options& options, const MatchResults& results);

}  // namespace canele::perf
