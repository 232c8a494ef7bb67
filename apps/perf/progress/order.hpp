// SPDX-License-Identifier: BSD-3-Clause
//
// Order: what rank 0 tells rank 1 to do next, both beginning at an agreed date, and rank 1's answer.
//
// Used by overlap and availability. Threads: the main thread of each rank. The date lies far enough ahead that both
// ranks have left the library and wait for it in a loop of their own. A batch that began late on one side does not
// count.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks.hpp"

namespace canele::perf::progress {

struct Order {
  std::uint64_t start = 0;      ///< date in ticks; 0: end.
  std::uint64_t size = 0;       ///< of the transfer from sender to the other rank.
  std::uint64_t sender = 0;     ///< rank.
  std::uint64_t transfers = 0;  ///< 0: no transfer.
  std::uint64_t turns[2] = {};  ///< of compute(), by rank, between post and wait.
};

/// Dates of one rank, in ticks.
struct Dates {
  std::uint64_t start = 0, posted = 0, computed = 0, end = 0;
  double cpu_us = 0;
  std::uint64_t late = 0;
};

struct Outcome {
  Dates of[2];
  bool good() const { return of[0].late + of[1].late == 0; }
  /// Returns the latest end minus the earliest start.
  std::uint64_t ticks() const {
    const std::uint64_t start = of[0].start < of[1].start ? of[0].start : of[1].start;
    return (of[0].end > of[1].end ? of[0].end : of[1].end) - start;
  }
};

class Orders {
 public:
  explicit Orders(Bench& bench) : bench_(bench) {}
  ~Orders() = default;

  /// Lets both ranks carry out the order. Repeats it if one of them began late. Rank 0 only.
  Outcome give(Order order);
  /// Tells rank 1 that there are no more orders. Rank 0 only.
  void end();
  /// Does what rank 0 says, until the end. Rank 1 only.
  void follow();

 private:
  Dates carry_out(const Order& order);
  void* data_of(std::size_t size);

  Bench& bench_;
  std::vector<char> buffer_;
  void* allocated_ = nullptr;  ///< in place of `buffer_`, where the messages are elsewhere
  std::size_t allocated_size_ = 0;
};

}  // namespace canele::perf::progress
