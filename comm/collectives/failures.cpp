// SPDX-License-Identifier: BSD-3-Clause
//
// The record of failed collectives: ranges of numbers, searched by bisection.
#include "comm/collectives/failures.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm::collectives {

Ending Failures::of(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Ending own = find(number);
  return own.code != CANELE_OK ? own : end_;
}

bool Failures::note(std::uint64_t number, Ending ending) {
  assert(ending.code != CANELE_OK);
  const std::lock_guard lock(mutex_);
  if (end_.code != CANELE_OK) return false;
  if (number == all) {
    end_ = ending;
    advance(all);
    return true;
  }
  if (find(number).code != CANELE_OK) return false;
  insert(number, ending);
  advance(number + 1);
  return true;
}

Ending Failures::find(std::uint64_t number) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), number,
                                      [](std::uint64_t n, const Range& range) { return n < range.first; });
  if (after == ranges_.begin()) return {};
  const Range& range = *(after - 1);
  return number <= range.last ? range.ending : Ending{};
}

void Failures::insert(std::uint64_t number, Ending ending) {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), number,
                                      [](std::uint64_t n, const Range& range) { return n < range.first; });
  if (after != ranges_.begin()) {
    Range& before = *(after - 1);
    if (before.last + 1 == number && before.ending == ending) {
      before.last = number;
      return;
    }
  }
  ranges_.insert(after, {number, number, ending});
}

void Failures::advance(std::uint64_t below) {
  if (below > below_.load(std::memory_order_relaxed)) below_.store(below, std::memory_order_seq_cst);
}

}  // namespace canele::comm::collectives
