// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations between two ranks: rank 0 is the origin, rank 1 the target. Main thread only.
//
// While the origin measures, the target waits in a receive, so that its progress serves the operations. Afterwards the
// data is checked: of a put and of an atomic operation at the target, of a get at the origin. The floor of mapped
// memory is the plain copy, or the atomic instruction, on the address of canele_key_map.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "options.hpp"

namespace canele::perf {

/// What one row of the report measures.
struct OneSidedCase {
  TargetMemory memory;
  OneSidedOperation operation;
  Measure measure;
  std::uint64_t size;
  int window;  ///< operations before each wait; 1 for latency
  int rounds;  ///< windows in a batch
};

struct OneSidedResult {
  OneSidedCase what;
  bool mapped = false;        ///< the origin has mapped the memory
  std::vector<double> ours;   ///< us of an operation, or operations/s; one per batch
  std::vector<double> floor;  ///< empty: not measured
};

struct OneSidedResults {
  std::string driver;  ///< of messages to the target; operations on mapped memory need none
  std::vector<OneSidedResult> rows;
};

const char* name_of(TargetMemory memory);
const char* name_of(OneSidedOperation operation);

/// Measures all cases of the options. Throws if an operation fails, or has written wrong data, or if another driver
/// than the requested one carries the messages. Only rank 0's results have a meaning.
OneSidedResults measure_one_sided(Job& job, const Options& options);

/// Writes the report to stdout.
void print_one_sided(const Job& job, const Options& options, const OneSidedResults& results);

}  // namespace canele::perf
