// SPDX-License-Identifier: BSD-3-Clause
//
// Bare: what a collective has to copy and sum at this rank, done by a plain thread on the core for progress. No library
// is involved, so the loss of the computation is caused by the machine.
//
// Used by Orders on every rank. Threads: the main thread of the rank calls it. It has a thread of its own, which sleeps
// except for its work. Data of other ranks is copied as the kernel copies between processes, but within this process,
// because that is always allowed.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "operation.hpp"

namespace canele::perf::nbc {

/// In bytes.
struct BareAmount {
  std::uint64_t fetched;  ///< from other ranks
  std::uint64_t summed;   ///< part of `fetched`: summed from a piece that stays in the cache
  std::uint64_t own;      ///< copied within the rank
  bool operator==(const BareAmount&) const = default;
};

/// Returns the minimum work of a rank: every block of other ranks that it must have comes once. Rank 0 is the root. A
/// reduction passes along a chain, or in halves.
BareAmount bare_amount(Operation operation, std::uint64_t size, int rank, int ranks);

class Bare {
 public:
  explicit Bare(int core);
  ~Bare();
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  /// Allocates the memory and touches all of it.
  void prepare(BareAmount amount);
  /// Starts the copies and sums.
  void start();
  /// Sleeps until they are done.
  void wait();
  /// Returns the result when it is done: sums of 1 and 2, then ones.
  std::span<const double> result() const { return result_; }

 private:
  void serve(int core);
  void work();

  BareAmount amount_{};
  std::vector<double> theirs_, mine_, result_, piece_;
  std::atomic<std::uint32_t> asked_{0}, done_{0};  ///< rounds
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace canele::perf::nbc
