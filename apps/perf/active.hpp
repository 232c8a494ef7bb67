// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages between two ranks: rank 0 sends, rank 1 answers. The handlers run on the main threads, unless a
// worker makes the progress.
//
// Handlers: rank 1 answers within its handler. Both main threads wait by canele_condition_wait, as the thread of a
// runtime does that has nothing else to do; the handler of rank 0 signals its condition. With --poll they call
// canele_progress in a loop, as the communication thread of a runtime does. Queues: both main threads call
// canele_queue_take in a loop, answer, then release the message. Calls: rank 1 replies within its handler, and rank 0
// waits for its requests; a latency has a reply as long as the message, a rate has empty ones and no further answer.
//
// A latency is half a round trip for every kind, calls included. A message has a header of 8 bytes, its number; memory
// for a payload of more than 1,024 bytes comes from `place`, one buffer for each message of a window. The floor is the
// same exchange by canele_isend and canele_irecv: measure.hpp.
//
// Every message is checked: its number, its length, the first and the last byte of its payload. The first batch and the
// last one, which are not timed, check every byte, and erase it afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// What one row of the report measures.
struct ActiveCase {
  ActiveKind kind;
  Measure measure;
  std::uint64_t size;  ///< of the payload, in bytes
  int window;          ///< messages before each answer; 1 for latency
  int rounds;          ///< windows in a batch
  bool poll;           ///< main threads wait by canele_progress

  std::uint64_t messages() const { return static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(window); }
  /// Returns the bytes of the answer's payload.
  std::uint64_t answer_size() const { return measure == Measure::latency ? size : 0; }
};

struct ActiveResult {
  ActiveCase what;
  std::vector<double> ours;   ///< us of a message one way, or messages/s; one per batch
  std::vector<double> floor;  ///< empty: not measured
};

struct ActiveResults {
  std::string driver;
  std::vector<ActiveResult> rows;
  std::size_t most_injected = 0;        ///< bytes of a payload, beside the header
  std::vector<std::uint64_t> too_long;  ///< sizes that kind inject has left out
};

const char* name_of(ActiveKind kind);

/// Measures all cases of the options. Throws if a message fails or is wrong, or if another driver than the requested
/// one carries the messages. Only rank 0's results have a meaning.
ActiveResults measure_active(Job& job, const Options& options);

/// Writes the report to stdout.
void print_active(const Job& job, const Options& options, const ActiveResults& results);

}  // namespace canele::perf
