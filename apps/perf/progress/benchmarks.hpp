// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmarks of progress: each on two ranks of one host (passive: three; alltoall, pairs,
// silence, clock: many), through a Link.
//
// run() calls them on all ranks, in canele-perf or in a peer's program. Threads: the main thread; they start others.
// Only rank 0 decides and reports. Rank 1 does what rank 0 says (overlap, availability) or what the options say
// (threads, overload, pairs).
#pragma once

#include <cstddef>
#include <functional>

#include "clock.hpp"
#include "link.hpp"
#include "options.hpp"
#include "report.hpp"

namespace canele::perf::progress {

/// Returns memory of this size for messages, in place of what it has returned before.
using MessageAllocator = std::function<void*(std::size_t)>;

/// Common input of all benchmarks.
struct Bench {
  Link& link;
  const Clock& clock;
  const Options& options;
  Report& report;
  const MessageAllocator& allocate;  ///< overlap: of its messages; empty: host memory
  double us_per_turn;                ///< of compute(), now
  double us_per_turn_calm;           ///< before the library was started
};

void overlap(Bench& bench);
void threads(Bench& bench);
void overload(Bench& bench);
void availability(Bench& bench);
void alltoall(Bench& bench);
void pairs(Bench& bench);
void silence(Bench& bench);
void passive(Bench& bench);
/// Starts its ranks itself. Throws std::runtime_error with the reason.
void bare_alltoall(const Options& options);
void clocks(Bench& bench);

/// Pins this thread and runs the benchmark that options.benchmark names. Throws std::runtime_error with the reason.
void run(Link& link, const Clock& clock, const Options& options, double us_per_turn_calm,
         const MessageAllocator& allocate = {});

}  // namespace canele::perf::progress
