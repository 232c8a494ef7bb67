// SPDX-License-Identifier: BSD-3-Clause
//
// Order: what rank 0 tells all ranks to do next, beginning at an agreed date, and their answers.
//
// Threads: the main thread of each rank. If ranks share a core, each rank yields once when its collective has been
// started. Otherwise the first rank would compute before the second one starts, which no machine with a core for each
// rank would do.
#pragma once

#include <cstdint>
#include <vector>

#include "../progress/link.hpp"
#include "../progress/report.hpp"
#include "bare.hpp"
#include "collectives.hpp"
#include "metrics.hpp"
#include "operation.hpp"
#include "solo.hpp"
#include "work.hpp"

namespace canele::perf::nbc {

/// What the benchmarks of one rank use.
struct Bench {
  progress::Link& link;
  Collectives& collectives;
  const progress::Clock& clock;
  const Options& options;
  progress::Report& report;
  Work& work;
  Bare* bare;  ///< nullptr: no core for it
  double us_per_row;
  double impact;        ///< r_mpi_impact, the largest of all ranks
  bool oversubscribed;  ///< ranks share cores
};

struct Order {
  std::uint64_t start = 0;  ///< date in ticks; 0: end.
  Operation operation = Operation::barrier;
  std::uint64_t size = 0;         ///< of a block.
  std::uint64_t communicate = 0;  ///< 0: only compute.
  std::uint64_t bare = 0;         ///< bare copies and sums instead of the collective.
  std::uint64_t rows = 0;         ///< of the work, on each core.
  std::uint64_t delay = 0;        ///< of rank 0, in ticks.
  std::uint64_t check = 0;        ///< results are checked, too.
};

/// Dates of one rank, in ticks.
struct Dates {
  std::uint64_t start = 0, called = 0, computed = 0, end = 0;
  std::uint64_t late = 0;
};

/// Times in us, of all ranks.
struct Outcome {
  double global = 0;  ///< latest end minus earliest start
  std::vector<Phases> ranks;
};

class Orders {
 public:
  explicit Orders(Bench& bench) : bench_(bench), buffers_(bench.link.rank(), bench.link.size()) {}

  /// Lets all ranks carry out the order. Repeats it if one of them learned of it too late. Rank 0 only.
  Outcome give(Order order);
  /// Tells the other ranks that there are no more orders. Rank 0 only.
  void end();
  /// Does what rank 0 says, until the end. All other ranks.
  void follow();

 private:
  bool try_once(Order& order, std::vector<Dates>& dates);
  Dates carry_out(const Order& order);
  void wait_until(std::uint64_t date) const;

  Bench& bench_;
  Buffers buffers_;
  double ahead_us_ = 500;
};

}  // namespace canele::perf::nbc
