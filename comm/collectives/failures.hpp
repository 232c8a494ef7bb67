// SPDX-License-Identifier: BSD-3-Clause
//
// Failures: which collectives of a group have failed, and why.
//
// A collective is named by its number: the ranks of a group start its collectives in the same order. A failure belongs
// to one number, or ends the group, which means all numbers. The first failure of a number counts.
//
// Any thread may call these functions, under the engine's lock or not. As long as nothing has failed, a question costs
// one load and a comparison.
//
// A program may go on after any number of failures. Numbers that follow each other and have the same ending are
// therefore kept as one range.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace canele::comm::collectives {

/// Why a group has ended, or why a collective or a message of it has failed.
struct Ending {
  std::int32_t code = CANELE_OK;
  std::int32_t rank = -1;  ///< rank in the job of the peer that died, or violated the protocol
  bool operator==(const Ending&) const = default;
};

class Failures {
 public:
  static constexpr std::uint64_t all = ~std::uint64_t{0};  ///< as a number: the end of the group

  /// Returns true if this collective has failed, or the group has ended.
  bool has(std::uint64_t number) const {
    // Pairs with the store in advance(): a thread that posts a receive and then asks is told, or its receive is seen.
    return number < below_.load(std::memory_order_seq_cst) && of(number).code != CANELE_OK;
  }
  /// Returns true if the group has ended.
  bool has_all() const { return below_.load(std::memory_order_seq_cst) == all; }
  /// Returns true if a collective has failed, or the group has ended.
  bool has_any() const { return below_.load(std::memory_order_seq_cst) != 0; }

  /// Returns why the collective has failed; code CANELE_OK if it has not. For `all`: why the group has ended.
  Ending of(std::uint64_t number) const;
  /// Records a failure; for `all`, the end of the group. Returns false if one was recorded for this number, or the
  /// group had ended. Throws std::bad_alloc, but not for `all`.
  bool note(std::uint64_t number, Ending ending);

 private:
  struct Range {
    std::uint64_t first = 0, last = 0;
    Ending ending;
  };
  Ending find(std::uint64_t number) const;
  void insert(std::uint64_t number, Ending ending);
  void advance(std::uint64_t below);

  /// All failed numbers are below it; 0: nothing has failed; `all`: the group has ended.
  std::atomic<std::uint64_t> below_{0};
  mutable std::mutex mutex_;   // guards what follows; taken only once something has failed
  std::vector<Range> ranges_;  ///< ascending
  Ending end_;
};

}  // namespace canele::comm::collectives
