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

/// Where a message goes.
struct Turn {
  canele_session_t* session;
  std::uint64_t tag;
};

/// Memory and requests of one size, made once, so that the loops allocate nothing.
class Stream {
 public:
  Stream(Job& job, std::size_t size, int window, std::uint64_t tags = 1, int sessions = 1);
  /// Sessions and tags take turns: the same at both ranks, if they send and receive as much.
  Turn next();

  std::vector<std::byte> out, in;
  std::vector<canele_request_t> requests;
  std::vector<canele_request_t*> pointers;

 private:
  std::uint64_t tags_, tag_ = 0;
  std::vector<canele::session> opened_;
  std::vector<canele_session_t*> sessions_;
  std::size_t session_ = 0;
};

/// Nanoseconds one way, mean over the rounds.
double ping_pong(Job& job, Stream& stream, std::size_t size, int rounds);
/// Nanoseconds per message: windows of sends, each answered by one empty message.
double one_way(Job& job, Stream& stream, std::size_t size, int rounds);

/// Throws if a message fails, or another driver than asked for carried it.
Results measure(Job& job, const Options& options);

}  // namespace canele::perf
