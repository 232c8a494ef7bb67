// SPDX-License-Identifier: BSD-3-Clause
//
// Options of canele-perf. main() parses them once; one thread.
//
// Both ranks must compute equal schedules from them, so nothing here may depend on the rank or the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "active_options.hpp"
#include "broadcast_options.hpp"
#include "flood_options.hpp"
#include "gpu.hpp"
#include "match_plan.hpp"
#include "nbc/options.hpp"
#include "one_sided_options.hpp"
#include "progress/options.hpp"

namespace canele::perf {

enum class Benchmark {
  latency,
  bandwidth,
  rate,
  put,
  get,
  atomics,
  am,
  sample,
  match,
  flood,
  broadcast,
  callback,
  progress,
  nbc,
  script
};

struct Options {
  Benchmark benchmark = Benchmark::latency;
  std::string driver;                ///< "" = as configured.
  std::vector<std::string> drivers;  ///< of sample (none: all available ones), flood, broadcast, callback.
  std::vector<std::uint64_t> sizes;  ///< of messages.
  int batches = 31;
  int iterations = 0;  ///< per batch; 0: chosen by the size
  std::vector<int> cores;
  bool json = false;
  bool floor = true;
  bool bare_engine = false;  ///< use it as the floor, if there is one
  bool pin = true;
  std::uint64_t tags = 1;          ///< number of tags that the messages of a stream take in turn
  int sessions = 1;                ///< number of sessions that they take in turn
  std::vector<MemoryKind> memory;  ///< of rank 0 and rank 1, or of both; empty: host.
  OneSidedOptions one_sided;
  ActiveOptions active;
  MatchOptions match;
  FloodOptions flood;
  BroadcastOptions broadcast;
  double busy_us = 5'000;      ///< callback: duration of one.
  progress::Options progress;  ///< overlap, threads, overload, availability.
  nbc::Options nbc;
  std::string script;              ///< compare, growth, prebuild: the program in peers
  std::vector<std::string> words;  ///< and its arguments

  /// Returns where a rank has its messages.
  MemoryKind memory_of(int rank) const;
  bool uses_gpu() const { return memory_of(0) != MemoryKind::host || memory_of(1) != MemoryKind::host; }
  /// Returns the messages in flight before the receiver answers; 1 for the ping-pong.
  int window() const;
  /// Returns the windows (ping-pongs) in one batch of messages of `size` bytes.
  int rounds(std::uint64_t size) const { return rounds(size, window()); }
  /// Returns the windows in one batch, for windows of any length.
  int rounds(std::uint64_t size, int window) const;
  /// Returns the one-sided operations before a flush.
  int window_of_one_sided(std::uint64_t size) const;
  /// Returns the active messages before an answer.
  int window_of_active(std::uint64_t size) const;
};

/// Tells whether it is put, get or atomics.
bool is_one_sided(Benchmark benchmark);

const char* name_of(Benchmark benchmark);
const char* unit_of(Benchmark benchmark);

/// Reads the command line. Returns false if everything has been printed already: exit with *code.
bool parse_options(int argc, char** argv, Options* options, int* code);

}  // namespace canele::perf
