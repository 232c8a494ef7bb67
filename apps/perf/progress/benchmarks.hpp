// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmarks of progress: each on two ranks of one host (alltoall, silence, clock: on many), through a Link.
//
// Who: run(), by main of canele-perf or of a peer's program, on both ranks. Threads: the main thread; they start
// others. Surprise: only rank 0 decides and reports; rank 1 does what it is told (overlap, availability) or what the
// options
//     say (threads, overload).
#pragma once

#include "clock.hpp"
#include "link.hpp"
#include "options.hpp"
#include "report.hpp"

namespace canele::perf::progress {

/// What all of them get.
struct Bench {
  Link& link;
  const Clock& clock;
  const Options& options;
  Report& report;
  double us_per_turn;       ///< of compute(), now
  double us_per_turn_calm;  ///< before the library was started
};

void overlap(Bench& bench);
void threads(Bench& bench);
void overload(Bench& bench);
void availability(Bench& bench);
void alltoall(Bench& bench);
void silence(Bench& bench);
/// Starts its ranks itself. Throws std::runtime_error with what is wrong.
void bare_alltoall(const Options& options);
void clocks(Bench& bench);

/// Pins this thread and runs what options.benchmark names. Throws std::runtime_error with what is wrong.
void run(Link& link, const Clock& clock, const Options& options, double us_per_turn_calm);

}  // namespace canele::perf::progress
