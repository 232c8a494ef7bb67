// SPDX-License-Identifier: BSD-3-Clause
//
// Folding a group to a power of two, and recursive halving: the first half of many reductions.
//
// Used by the algorithms of this directory. One thread at a time for one plan.
//
// Halving keeps the order of operands if neighbours exchange first. A core then always holds the result over a run of
// neighbours. In return, it ends up with the piece whose number is its own with the bits reversed.
//
//    fold, 7 ranks       0 ─▶ 1   2 ─▶ 3   4 ─▶ 5   6      the even one of the first pairs gives its operand to its
//    cores                    0        1        2   3      neighbour, waits, and receives the result at the end
//
//    halving, 4 cores    pieces abcd, near first: 0 keeps ab of 0+1, 1 keeps cd of 0+1    then 0: a of all, 2: b of all
//                                                 2 keeps ab of 2+3, 3 keeps cd of 2+3         1: c of all, 3: d of all
//
// Rabenseifner: Optimization of collective reduction operations, 2004; folding as in Thakur, Rabenseifner, Gropp, 2005.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/plan.hpp"

namespace canele::comm::collectives {

class Fold {
 public:
  /// `keep`: a position that must not be folded away.
  explicit Fold(int size, int keep = -1);

  int cores() const { return cores_; }    ///< the largest power of two not above the size.
  int rounds() const { return rounds_; }  ///< its logarithm.
  int core_of(int position) const;        ///< -1: folded away
  int position_of(int core) const;
  /// Returns the core that represents `position`, and the other position of its pair.
  int standing_for(int position) const { return position < 2 * pairs_ ? position / 2 : position - pairs_; }
  /// Returns the other position of the pair; -1: `position` is not in a pair.
  int other_of(int position) const { return position < 2 * pairs_ ? position ^ 1 : -1; }
  /// Returns the first position that a core represents; a core represents a run of one or two. For `cores()`: the size.
  int first_of(int core) const { return core < pairs_ ? 2 * core : core + pairs_; }

 private:
  int cores_ = 1, rounds_ = 0, pairs_ = 0, keep_;
};

/// Operands of a group, halved until each core has a piece of the result, and then gathered.
class Halving {
 public:
  enum class Order : std::uint8_t { near_first, far_first };  ///< far_first: only for operators that commute

  /// `bounds`: where the pieces begin, one for each core, and where the last one ends. `result` is memory for the whole
  /// vector, in which this core's piece ends up at its offset. `result` may be `own`.
  Halving(Plan& plan, const Fold& fold, const Range& own, const Range& result, std::vector<std::uint64_t> bounds,
          Order order);
  static std::vector<std::uint64_t> even(const Fold& fold, std::uint64_t length, std::uint64_t element);

  void reduce();
  /// Returns the core that has `piece` after reduce(). piece_of() is the inverse.
  int holder_of(int piece) const;
  int piece_of(int core) const { return holder_of(core); }  // reversing the bits twice restores them
  /// Sends all pieces to all ranks, including the folded ones.
  void spread();
  /// Sends all pieces to one core.
  void gather_to(int core);

 private:
  enum Phase : std::uint32_t { fold_phase, halve_phase, gather_phase, unfold_phase };

  int bit_of(int round) const { return order_ == Order::near_first ? round : fold_.rounds() - 1 - round; }
  Range pieces(const Range& whole, int first, int count) const;
  void fold_in();
  void halve(int round);

  Plan& plan_;
  const Fold& fold_;
  Range sum_;  // own or result: the operand that is halved next
  Range result_;
  std::vector<std::uint64_t> bounds_;
  Order order_;
  int core_, first_ = 0, count_;  // this core holds pieces first_ to first_ + count_
};

}  // namespace canele::comm::collectives
