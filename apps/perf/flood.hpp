// SPDX-License-Identifier: BSD-3-Clause
//
// Flood: sends messages to a rank that posts no receive until all of them have been sent. Measures how much it keeps,
// and checks that the rest is in order.
//
// Runs on all ranks; rank 0 receives. Threads: the main thread. One job is one flood, because the peak memory of a
// process covers its whole life.
#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"

namespace canele::perf {

/// Returns word `number` of what a rank sends. Message i of 8-byte words holds the words i, i + 1, ... Every message
/// thus differs from the others, and one buffer serves all.
constexpr std::uint64_t flood_word(int rank, std::uint64_t number) {
  std::uint64_t word = (static_cast<std::uint64_t>(rank) << 40) + number + 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  return word ^ word >> 27;
}

/// Returns the number of messages of each sender.
std::uint64_t flood_messages(const FloodOptions& options, std::uint64_t size);

/// Returns the allowed growth of a receiver's resident memory: the limit plus a tenth of it, unless the user sets
/// another value.
constexpr std::uint64_t allowed(const FloodOptions& options) {
  return options.allow != 0 ? options.allow : options.limit + options.limit / 10;
}

/// Runs a job for each driver, number of senders and size. Returns the exit code: 1 if one of them failed.
int flood_each(const Options& options);

/// Runs one flood in a job, with all ranks but 0 as senders. Returns the exit code: 1 if a receiver took too much
/// memory. Ends the job, with a message, if order or content is wrong.
int flood(const Options& options);

}  // namespace canele::perf
