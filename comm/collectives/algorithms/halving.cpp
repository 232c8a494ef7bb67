// SPDX-License-Identifier: BSD-3-Clause
//
// Folding and halving. Until the first message arrives, the operand is the caller's input, which is sent from and never
// written. The first receive goes directly to the place of the result.
#include "comm/collectives/algorithms/halving.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace canele::comm::collectives {

Fold::Fold(int size, int keep) : keep_(keep) {
  assert(size > 0);
  for (; cores_ <= size / 2; cores_ *= 2) ++rounds_;
  pairs_ = size - cores_;
}

int Fold::core_of(int position) const {
  const int core = standing_for(position);
  return position_of(core) == position ? core : -1;
}

int Fold::position_of(int core) const {
  if (core >= pairs_) return core + pairs_;
  return keep_ == 2 * core ? keep_ : 2 * core + 1;
}

Halving::Halving(Plan& plan, const Fold& fold, const Range& own, const Range& result, std::vector<std::uint64_t> bounds,
                 Order order)
    : plan_(plan),
      fold_(fold),
      sum_(own),
      result_(result),
      bounds_(std::move(bounds)),
      order_(order),
      core_(fold.core_of(plan.call().rank)),
      count_(fold.cores()) {
  assert(bounds_.size() == static_cast<std::size_t>(fold.cores()) + 1);
  assert((order == Order::near_first || plan.call().commutes) && "far ones first mixes the order of operands");
}

std::vector<std::uint64_t> Halving::even(const Fold& fold, std::uint64_t length, std::uint64_t element) {
  const auto cores = static_cast<std::uint64_t>(fold.cores());
  const Cut cut = Cut::even(length, element, cores);
  std::vector<std::uint64_t> bounds;
  for (std::uint64_t piece = 0; piece <= cores; ++piece) bounds.push_back(cut.at(piece));
  return bounds;
}

Range Halving::pieces(const Range& whole, int first, int count) const {
  const std::uint64_t begin = bounds_[static_cast<std::size_t>(first)];
  return whole.slice(begin, bounds_[static_cast<std::size_t>(first + count)] - begin);
}

void Halving::reduce() {
  fold_in();
  for (int round = 0; core_ >= 0 && round < fold_.rounds(); ++round) halve(round);
  if (core_ >= 0 && fold_.rounds() == 0) plan_.copy(sum_, result_);
}

void Halving::fold_in() {
  const int rank = plan_.call().rank, other = fold_.other_of(rank);
  if (other < 0) return;
  if (core_ < 0) return plan_.send(other, slot_of(fold_phase, 0), sum_);
  const bool in_place = sum_.space == result_.space;
  const Range in = in_place ? plan_.scratch(sum_.length) : result_;
  plan_.receive(other, slot_of(fold_phase, 0), in);
  in_place ? plan_.fold(in, sum_, other > rank) : plan_.fold(sum_, in, rank > other);
  sum_ = result_;
}

void Halving::halve(int round) {
  const int bit = bit_of(round), other = core_ ^ (1 << bit), half = count_ / 2;
  const bool upper = (core_ >> bit & 1) != 0;
  const int keep = upper ? first_ + half : first_, give = upper ? first_ : first_ + half;
  const int peer = fold_.position_of(other);
  const Range mine = pieces(sum_, keep, half), kept = pieces(result_, keep, half);
  if (sum_.space == result_.space) {
    const Range in = plan_.scratch(mine.length);
    plan_.receive(peer, slot_of(halve_phase, static_cast<std::uint64_t>(round)), in);
    plan_.send(peer, slot_of(halve_phase, static_cast<std::uint64_t>(round)), pieces(sum_, give, half));
    plan_.fold(in, mine, other > core_);
  } else {
    plan_.receive(peer, slot_of(halve_phase, static_cast<std::uint64_t>(round)), kept);
    plan_.send(peer, slot_of(halve_phase, static_cast<std::uint64_t>(round)), pieces(sum_, give, half));
    plan_.fold(mine, kept, core_ > other);
    sum_ = result_;
  }
  first_ = keep;
  count_ = half;
}

int Halving::holder_of(int piece) const {
  if (order_ == Order::far_first) return piece;
  int core = 0;
  for (int bit = 0; bit < fold_.rounds(); ++bit) core |= (piece >> bit & 1) << (fold_.rounds() - 1 - bit);
  return core;
}

void Halving::spread() {
  for (int round = fold_.rounds() - 1; core_ >= 0 && round >= 0; --round) {
    const int bit = bit_of(round);
    const bool upper = (core_ >> bit & 1) != 0;
    const int peer = fold_.position_of(core_ ^ (1 << bit)), theirs = upper ? first_ - count_ : first_ + count_;
    const std::uint32_t slot = slot_of(gather_phase, static_cast<std::uint64_t>(round));
    plan_.receive(peer, slot, pieces(result_, theirs, count_));
    plan_.send(peer, slot, pieces(result_, first_, count_));
    first_ = std::min(first_, theirs);
    count_ *= 2;
  }
  const int other = fold_.other_of(plan_.call().rank);
  if (other < 0) return;
  const std::uint32_t slot = slot_of(unfold_phase, 0);
  core_ >= 0 ? plan_.send(other, slot, result_) : plan_.receive(other, slot, result_);
}

void Halving::gather_to(int core) {
  for (int round = fold_.rounds() - 1; core_ >= 0 && round >= 0; --round) {
    const int bit = bit_of(round);
    const bool upper = (core_ >> bit & 1) != 0, wanted_upper = (core >> bit & 1) != 0;
    const int peer = fold_.position_of(core_ ^ (1 << bit)), theirs = upper ? first_ - count_ : first_ + count_;
    const std::uint32_t slot = slot_of(gather_phase, static_cast<std::uint64_t>(round));
    if (upper != wanted_upper) return plan_.send(peer, slot, pieces(result_, first_, count_));
    plan_.receive(peer, slot, pieces(result_, theirs, count_));
    first_ = std::min(first_, theirs);
    count_ *= 2;
  }
}

}  // namespace canele::comm::collectives
