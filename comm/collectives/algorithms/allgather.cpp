// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather, also of blocks with individual lengths. Both ends agree on the content of a message, but its offset may
// differ: each rank has its own offsets. Where blocks are not contiguous, all algorithms but flat and the ring work in
// scratch, and copy the blocks to their places at the end.
//
//    recursive doubling, 4 ranks     0 ◀─▶ 1, 2 ◀─▶ 3: one block each  then 0 ◀─▶ 2, 1 ◀─▶ 3: two blocks each
//    Bruck, any n                    round k: the first 2^k blocks of this rank, from its own on, to rank - 2^k
//    ring                            the block received last goes on to the right, n - 1 times
//    flat                            each rank sends to each other rank
//
// Where n is not a power of two, doubling folds the first ranks in pairs. That costs two more rounds, which Bruck's
// algorithm does not need.
// Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing
// systems, 1997; the others: Thakur, Rabenseifner, Gropp, 2005.
#include <algorithm>
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/halving.hpp"
#include "comm/collectives/algorithms/layout.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

enum AllgatherPhase : std::uint32_t { up_phase, across_phase, down_phase };

Range output_block(const Call& call, int position) {
  return {Space::output, call.output.offset_of(position), call.output.length_of(position)};
}

/// Returns this rank's block, where the caller has it.
Range own_block(const Call& call) {
  const Range block = output_block(call, call.rank);
  return call.in_place ? block : Range{Space::input, 0, block.length};
}

/// All blocks contiguously: in the output itself if it is contiguous, otherwise in scratch.
class Collected {
 public:
  explicit Collected(Plan& plan)
      : plan_(plan),
        runs_(runs_of(plan.call().output, Space::output, plan.call().size, 0, plan.call().size)),
        bounds_(bounds_of(plan.call().output, plan.call().size, 0, plan.call().size)) {
    memory_ = runs_.size() == 1 ? runs_.front() : plan.scratch(bounds_.back());
    plan.copy(own_block(plan.call()), blocks(plan.call().rank, 1));
  }
  Range blocks(int first, int count) const {
    const std::uint64_t begin = bounds_[static_cast<std::size_t>(first)];
    return memory_.slice(begin, bounds_[static_cast<std::size_t>(first + count)] - begin);
  }
  const std::vector<std::uint64_t>& bounds() const { return bounds_; }
  const Range& memory() const { return memory_; }
  void deliver() {
    if (memory_.space == Space::scratch) copy_to_runs(plan_, memory_, runs_);
  }

 private:
  Plan& plan_;
  std::vector<Range> runs_;
  std::vector<std::uint64_t> bounds_;
  Range memory_;
};

/// The rounds of the cores: each core has the blocks of an aligned run of cores, which doubles in each round.
void double_blocks(Plan& plan, const Fold& fold, const Collected& all) {
  const Call& call = plan.call();
  const int core = fold.core_of(call.rank);
  for (int round = 0; core >= 0 && round < fold.rounds(); ++round) {
    const int some = 1 << round, mine = core & ~(some - 1), theirs = mine ^ some;
    const int peer = fold.position_of(core ^ some);
    const auto blocks_of = [&](int first) {
      return all.blocks(fold.first_of(first), fold.first_of(first + some) - fold.first_of(first));
    };
    plan.receive(peer, slot_of(across_phase, static_cast<std::uint64_t>(round)), blocks_of(theirs));
    const bool only_own = round == 0 && fold.other_of(call.rank) < 0;  // then the block need not be copied first
    plan.send(peer, slot_of(across_phase, static_cast<std::uint64_t>(round)),
              only_own ? own_block(call) : blocks_of(mine));
  }
}

}  // namespace

void allgather_recursive(Plan& plan) {
  const Call& call = plan.call();
  const Fold fold(call.size);
  Collected all(plan);
  const int other = fold.other_of(call.rank);
  const bool folded = fold.core_of(call.rank) < 0;
  if (other >= 0 && folded) plan.send(other, slot_of(up_phase, 0), own_block(call));
  if (other >= 0 && !folded) plan.receive(other, slot_of(up_phase, 0), all.blocks(other, 1));
  double_blocks(plan, fold, all);
  if (other >= 0) {  // all but the folded rank's own block, which lies between the two ranges
    const int away = folded ? call.rank : other;
    const auto pass = [&](std::uint64_t item, const Range& some) {
      const std::uint32_t slot = slot_of(down_phase, item);
      folded ? plan.receive(other, slot, some) : plan.send(other, slot, some);
    };
    pass(0, all.blocks(0, away));
    pass(1, all.blocks(away + 1, call.size - away - 1));
  }
  all.deliver();
}

void allgather_flat(Plan& plan) {
  const Call& call = plan.call();
  const Range own = own_block(call);
  for (int away = 1; away < call.size; ++away) {
    const int from = (call.rank + call.size - away) % call.size;
    plan.receive(from, slot_of(across_phase, 0), output_block(call, from));
  }
  for (int away = 1; away < call.size; ++away) {
    plan.send((call.rank + away) % call.size, slot_of(across_phase, 0), own);
  }
  plan.copy(own, output_block(call, call.rank));
}

void allgather_ring(Plan& plan) {
  const Call& call = plan.call();
  const int n = call.size, right = (call.rank + 1) % n, left = (call.rank + n - 1) % n;
  Range latest = own_block(call);
  plan.copy(latest, output_block(call, call.rank));
  for (int round = 0; round + 1 < n; ++round) {
    const Range in = output_block(call, (call.rank + 2 * n - 1 - round) % n);
    plan.receive(left, slot_of(across_phase, static_cast<std::uint64_t>(round)), in);
    plan.send(right, slot_of(across_phase, static_cast<std::uint64_t>(round)), latest);
    latest = in;
  }
}

void allgather_bruck(Plan& plan) {
  const Call& call = plan.call();
  const auto n = static_cast<std::uint64_t>(call.size);
  const std::vector<std::uint64_t> bounds = bounds_of(call.output, call.size, call.rank, call.size);
  const Range memory = plan.scratch(bounds.back());  // blocks from the own one on, wrapping around the group
  plan.copy(own_block(call), memory.slice(0, bounds[1]));
  std::uint64_t round = 0;
  for (std::uint64_t have = 1; have < n; have *= 2, ++round) {
    const std::uint64_t some = std::min(have, n - have), rank = static_cast<std::uint64_t>(call.rank);
    const auto to = static_cast<int>((rank + n - have) % n), from = static_cast<int>((rank + have) % n);
    const Range in = memory.slice(bounds[have], bounds[have + some] - bounds[have]);
    plan.receive(from, slot_of(across_phase, round), in);
    plan.send(to, slot_of(across_phase, round), have == 1 ? own_block(call) : memory.slice(0, bounds[some]));
  }
  plan.copy(own_block(call), output_block(call, call.rank));
  copy_to_runs(plan, memory.slice(bounds[1], bounds.back() - bounds[1]),
               runs_of(call.output, Space::output, call.size, (call.rank + 1) % call.size, call.size - 1));
}

void allgather_two_phases(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  Collected all(plan);
  const Tree tree = tree_of(call, choice, 0);
  gather_along(plan, tree, all.bounds(), all.blocks(call.rank, static_cast<int>(tree.parent.size)), up_phase);
  bcast_along(plan, tree, all.memory(), Cut::segments(all.memory().length, 1, choice.segment), down_phase);
  all.deliver();
}

}  // namespace canele::comm::collectives
