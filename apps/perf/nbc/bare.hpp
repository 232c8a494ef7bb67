// SPDX-License-Identifier: BSD-3-Clause
//
// Bare: what a collective has to copy and to sum at this rank, done by a plain thread on the core for progress. No
// library: what the computation then loses is the machine's doing.
//
// Who: Orders, on every rank. Threads: the main thread of the rank; it has one of its own, asleep but for its work.
// Surprise: what would come from another rank is copied as the kernel copies between processes, but within this one:
//     that is always allowed.
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
  std::uint64_t fetched;  ///< of other ranks
  std::uint64_t summed;   ///< of those: out of a piece that stays in the cache
  std::uint64_t own;      ///< copied within the rank
  bool operator==(const BareAmount&) const = default;
};

/// The least that a rank can do: every part of others that it must have comes once. Rank 0 is the root; a reduction
/// passes along a chain, or in halves.
BareAmount bare_amount(Operation operation, std::uint64_t size, int rank, int ranks);

class Bare {
 public:
  explicit Bare(int core);
  ~Bare();
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  /// Memory for it, all of it touched.
  void prepare(BareAmount amount);
  /// That much, from now on.
  void start();
  /// Asleep until it is done.
  void wait();
  /// When it is done: sums of 1 and 2, then what is 1.
  std::span<const double> result() const { return result_; }

 private:
  void serve(int core);
  void work();

  BareAmount amount_{};
  std::vector<double> theirs_, mine_, result_, piece_;
  std::atomic<std::uint32_t> asked_{0}, done_{0};  ///< rounds
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace canele::perf::nbc
