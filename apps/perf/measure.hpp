// SPDX-License-Identifier: BSD-3-Clause
//
// Measurements: ours and the floor's, batch by batch. Runs on both ranks, in the main thread.
//
// Only rank 0's results have a meaning; rank 1 follows the same schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// Results of one size. Samples are one per batch, in the unit of the benchmark.
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

/// Destination of a message.
struct Turn {
  canele_session_t* session;
  std::uint64_t tag;
};

/// Memory and requests of one size, made once, so that the loops allocate nothing.
class Stream {
 public:
  Stream(Job& job, std::size_t size, int window, std::uint64_t tags = 1, int sessions = 1,
         MemoryKind memory = MemoryKind::host);
  /// Returns the next session and tag, in turn. Both ranks get equal turns if they send and receive equally often.
  Turn next();

  MessageMemory out, in;
  std::size_t step = 0;  ///< in `in`, from one receive of a window to the next; 0: all have the same memory
  std::vector<canele_request_t> requests;
  std::vector<canele_request_t*> pointers;

 private:
  std::uint64_t tags_, tag_ = 0;
  std::vector<canele::session> opened_;
  std::vector<canele_session_t*> sessions_;
  std::size_t session_ = 0;
};

/// Returns the nanoseconds one way, mean over the rounds.
double ping_pong(Job& job, Stream& stream, std::size_t size, int rounds);
/// Returns the nanoseconds per message: windows of sends, each answered by one empty message.
double one_way(Job& job, Stream& stream, std::size_t size, int rounds);

/// Measures. Throws if a message fails, or another driver than requested carried it.
Results measure(Job& job, const Options& options);

}  // namespace canele::perf
