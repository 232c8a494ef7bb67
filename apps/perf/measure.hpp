// SPDX-License-Identifier: BSD-3-Clause
//
// Measurements: ours and the floor's, batch by batch.
//
// Who: main, on both ranks. Threads: the main thread.
// Surprise: only rank 0's results mean something; rank 1 follows the same schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// One size. Samples are one per batch, in the unit of the benchmark.
struct Result {
  std::uint64_t size = 0;
  int messages_per_batch = 0;
  std::vector<double> ours;
  std::vector<double> floor;  ///< empty: not measured
};

struct Results {
  std::string driver;
  std::string floor_name;  ///< or why there is no floor
  std::vector<Result> sizes;
};

/// Memory and requests of one size, made once, so that the loops allocate nothing.
struct Stream {
  std::vector<std::byte> out, in;
  std::vector<canele_request_t> requests;
  std::vector<canele_request_t*> pointers;

  Stream(std::size_t size, int window);
};

/// Nanoseconds one way, mean over the rounds.
double ping_pong(Job& job, Stream& stream, std::size_t size, int rounds);
/// Nanoseconds per message: windows of sends, each answered by one empty message.
double one_way(Job& job, Stream& stream, std::size_t size, int rounds);

/// Throws if a message fails, or another driver than asked for carried it.
Results measure(Job& job, const Options& options);

}  // namespace canele::perf
