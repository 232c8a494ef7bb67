// SPDX-License-Identifier: BSD-3-Clause
//
// Options of put, get and atomics. One thread.
//
// A subcommand measures every combination of its memories, operations, sizes and measures, in this order.
#pragma once

#include <cstdint>
#include <vector>

#include "measured.hpp"

namespace canele::perf {

/// How the target has got its memory: canele_memory_allocate, which origins of its host map, or
/// canele_memory_register.
enum class TargetMemory { mapped, registered };

enum class OneSidedOperation { put, get, fetch_and_add, compare_and_swap };

struct OneSidedOptions {
  std::vector<TargetMemory> memories = {TargetMemory::mapped, TargetMemory::registered};
  std::vector<OneSidedOperation> operations;
  /// latency: one operation, and the wait for its own completion. rate: a window of operations without completions,
  /// and one flush.
  std::vector<Measure> measures = {Measure::latency, Measure::rate};
  int window = 0;  ///< of rate; 0: by the size
};

}  // namespace canele::perf
