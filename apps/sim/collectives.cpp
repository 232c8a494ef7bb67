// SPDX-License-Identifier: BSD-3-Clause
//
// The workload of collectives.
//
// A rank that returns as another process does nothing, because the groups that had the old process have ended.
#include "apps/sim/collectives.hpp"

#include <canele/collectives.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "apps/sim/own_oracle.hpp"
#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/override.hpp"

namespace canele::sim {
namespace {

using comm::collectives::Algorithm;
using comm::collectives::Operation;
using Words = std::vector<std::int64_t>;

constexpr int operations = static_cast<int>(Operation::exscan) + 1;

/// One collective, as all ranks of its group know it.
struct Round {
  int number = 0, group = 0, root = 0;
  Operation operation = Operation::barrier;
  std::size_t count = 0;  ///< words of a block
  int algorithm = 0;
  int odd_position = -1;      ///< gives another number of words than the others; -1: none
  std::size_t odd_count = 0;  ///< that number
  std::size_t count_of(int p) const { return p == odd_position ? odd_count : count; }
  /// An alltoall among neighbours only.
  bool is_sparse() const { return operation == Operation::alltoall && algorithm == 0 && number % 2 != 0; }
  /// Returns true if position p sends to position q.
  bool has_edge(int p, int q) const { return !is_sparse() || (3 * p + 5 * q + number) % 4 != 0; }
};

/// What all ranks do, drawn once; and which groups they have revoked.
struct CollectivePlan {
  std::vector<int> some;  ///< ranks of the second group; the first group has all ranks
  std::vector<Round> rounds;
  mutable bool revoked[2] = {false, false};  ///< by group: a rank has revoked it

  CollectivePlan(int ranks, int wanted, Dice dice) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == 0 || dice.under(2) == 0) some.push_back(rank);
    }
    std::rotate(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(dice.under(some.size())), some.end());
    for (int number = 0; number < wanted; ++number) rounds.push_back(draw(number, ranks, dice));
  }

 private:
  Round draw(int number, int ranks, Dice& dice) const {
    constexpr std::uint64_t longest[] = {1, 8, 300, 9000};
    Round round;
    round.number = number;
    round.group = static_cast<int>(dice.under(2));
    const std::size_t size = round.group == 0 ? static_cast<std::size_t>(ranks) : some.size();
    round.root = static_cast<int>(dice.under(size));
    round.operation = static_cast<Operation>(dice.under(operations));
    round.count = dice.under(longest[dice.under(std::size(longest))] + 1);
    const auto algorithm = static_cast<Algorithm>(dice.under(comm::collectives::algorithms));
    if (dice.under(2) == 0 && comm::collectives::has(round.operation, algorithm))
      round.algorithm = static_cast<int>(algorithm);
    if (dice.under(8) == 0) disagree(round, size, dice);
    return round;
  }
  /// Makes one position disagree with the others. By the flat algorithm, and with messages in one piece, all positions
  /// still send and expect the same messages.
  static void disagree(Round& round, std::size_t size, Dice& dice) {
    constexpr std::uint64_t most = 300;
    if (round.operation == Operation::barrier || !comm::collectives::has(round.operation, Algorithm::flat)) return;
    round.algorithm = static_cast<int>(Algorithm::flat);
    round.odd_position = static_cast<int>(dice.under(size));
    round.count = dice.between(1, most);
    round.odd_count = dice.between(1, most);
  }
};

/// Returns word i of what position p gives to position q.
std::int64_t given(const Round& round, int p, int q, std::size_t i) {
  return std::int64_t{1'000'003} * round.number + std::int64_t{1009} * p + std::int64_t{31} * q +
         static_cast<std::int64_t>(i);
}

/// Returns the sum of word i over the positions [0, end).
std::int64_t together(const Round& round, int end, int q, std::size_t i) {
  return end * given(round, 0, q, i) + std::int64_t{1009} * end * (end - 1) / 2;
}

class CollectiveRank {
 public:
  CollectiveRank(World& world, const CollectivePlan& plan, const FaultPlan& faults, int rank, Dice dice)
      : world_(world), plan_(plan), faults_(faults), rank_(rank), dice_(dice) {}

  void run(canele_engine_t* engine) {
    canele_operator_of(CANELE_SUM, CANELE_INT64, &sum_);
    const bool in_some = std::find(plan_.some.begin(), plan_.some.end(), rank_) != plan_.some.end();
    must(canele_group_create(engine, "all", nullptr, 0, &groups_[0]));
    if (in_some) must(canele_group_create(engine, "some", plan_.some.data(), plan_.some.size(), &groups_[1]));
    const std::size_t most = dice_.between(1, 4);
    for (const Round& round : plan_.rounds) {
      if (groups_[round.group] == nullptr || given_up_[round.group]) continue;
      if (dice_.under(3) == 0) world_.pause_for(dice_.under(30'000));
      start(round);
      while (in_flight_.size() >= most) end_one();
    }
    while (!in_flight_.empty()) end_one();
    for (canele_group_t* const group : groups_) must(canele_group_destroy(group));
  }
  static void run_as_successor(World& /*world*/, canele_engine_t* /*engine*/) {}
  std::uint64_t completed = 0;
  std::string state() const {
    std::string text = "rank " + std::to_string(rank_) + " waits for the collective";
    if (waits_for_ >= 0) text += " " + std::to_string(waits_for_);
    if (!in_flight_.empty()) text += "; has begun";
    for (const auto& one : in_flight_) text += " " + std::to_string(one->round.number);
    return text;
  }

 private:
  struct Pending {
    Round round;
    int position = 0, size = 0;
    Words in, out;
    canele_request_t request{};
    std::size_t count() const { return round.count_of(position); }
  };

  void must(int code) {
    if (code != CANELE_OK) world_.complain("rank " + std::to_string(rank_) + ": " + canele_error_detail());
  }

  void start(const Round& round) {
    auto one = std::make_unique<Pending>();
    canele_group_t* const group = groups_[round.group];
    one->round = round;
    one->position = canele_group_rank(group);
    one->size = canele_group_size(group);
    for (int q = 0; q < one->size; ++q) {
      for (std::size_t i = 0; i < one->count(); ++i) one->in.push_back(given(round, one->position, q, i));
    }
    one->out.assign(one->in.size(), -1);
    if (round.operation == Operation::bcast && one->position == round.root) one->out = one->in;
    must(call(group, *one));
    in_flight_.push_back(std::move(one));
  }

  int call(canele_group_t* group, Pending& one) {
    canele_collective_options_t options{};
    options.struct_size = sizeof options;
    options.algorithm = one.round.algorithm;
    options.blocking = dice_.under(3) == 0 ? 1 : 0;
    const std::size_t count = one.count(), bytes = count * sizeof(std::int64_t);
    const canele_parts_t parts{bytes, nullptr, nullptr};
    const void* const in = one.in.data();
    void* const out = one.out.data();
    canele_request_t* const request = &one.request;
    switch (one.round.operation) {
      case Operation::barrier:
        return canele_ibarrier(group, &options, request);
      case Operation::bcast:
        return canele_ibcast(group, out, bytes, one.round.root, &options, request);
      case Operation::reduce:
        return canele_ireduce(group, in, out, count, &sum_, one.round.root, &options, request);
      case Operation::allreduce:
        return canele_iallreduce(group, in, out, count, &sum_, &options, request);
      case Operation::gather:
        return canele_igather(group, in, bytes, out, &parts, one.round.root, &options, request);
      case Operation::scatter:
        return canele_iscatter(group, in, &parts, out, bytes, one.round.root, &options, request);
      case Operation::allgather:
        return canele_iallgather(group, in, out, &parts, &options, request);
      case Operation::alltoall:
        if (one.round.is_sparse()) return exchange(group, one, options);
        return canele_ialltoall(group, in, &parts, out, &parts, &options, request);
      case Operation::reduce_scatter:
        return canele_ireduce_scatter(group, in, out, count, nullptr, &sum_, &options, request);
      case Operation::scan:
        return canele_iscan(group, in, out, count, &sum_, &options, request);
      case Operation::exscan:
        return canele_iexscan(group, in, out, count, &sum_, &options, request);
    }
    return CANELE_EINVAL;
  }

  int exchange(canele_group_t* group, Pending& one, const canele_collective_options_t& options) {
    std::vector<canele_edge_t> sends, receives;
    const std::size_t bytes = one.round.count * sizeof(std::int64_t);
    for (int q = 0; q < one.size; ++q) {
      const canele_edge_t edge{q, static_cast<std::size_t>(q) * bytes, bytes};
      if (one.round.has_edge(one.position, q)) sends.push_back(edge);
      if (one.round.has_edge(q, one.position)) receives.push_back(edge);
    }
    return canele_ineighbor_exchange(group, one.in.data(), sends.data(), sends.size(), one.out.data(), receives.data(),
                                     receives.size(), &options, &one.request);
  }

  /// Waits for one of the pending collectives, chosen at random.
  void end_one() {
    const auto which = in_flight_.begin() + static_cast<std::ptrdiff_t>(dice_.under(in_flight_.size()));
    const std::unique_ptr<Pending> one = std::move(*which);
    in_flight_.erase(which);
    canele_status_t status{};
    waits_for_ = one->round.number;
    canele_wait(&one->request, &status);
    waits_for_ = -1;
    if (status.error == CANELE_OK) {
      if (one->round.odd_position < 0) check(*one);
      ++completed;
      world_.trace(static_cast<std::uint64_t>(one->round.number));
    } else {
      if (!may_fail(one->round, status.error))
        wrong(*one, std::string("ended with ") + canele_error_string(status.error));
      failed(one->round.group, status.error);
    }
  }

  /// Goes on with the group, or gives it up. If other ranks may go on, they must be told.
  void failed(int group, int error) {
    constexpr int seldom = 8;
    const bool others_go_on = error == CANELE_EPROTOCOL || error == CANELE_ENOMEM;
    if (given_up_[group] || (others_go_on && dice_.under(seldom) != 0)) return;
    given_up_[group] = true;
    if (!others_go_on) return;
    plan_.revoked[group] = true;
    must(canele_group_revoke(groups_[group]));
  }

  bool may_fail(const Round& round, int error) const {
    if (error == CANELE_EPROTOCOL) return round.odd_position >= 0;
    if (error == CANELE_ESTATE) return plan_.revoked[round.group];
    if (error == CANELE_ENOMEM) return faults_.memory > 0;
    const bool cut = faults_.rails > 0 || faults_.payload > 0;
    return (error == CANELE_EPEER && (world_.deaths() > 0 || cut)) || (error == CANELE_EDRIVER && cut);
  }

  void wrong(const Pending& one, const std::string& what) {
    world_.complain("rank " + std::to_string(rank_) + ", collective " + std::to_string(one.round.number) + " (" +
                    std::string(comm::collectives::name_of(one.round.operation)) + "): " + what);
  }

  /// Checks every word that the operation gives to this position.
  void check(const Pending& one) {
    const Round& r = one.round;
    const int p = one.position, n = one.size;
    const bool root = p == r.root;
    const auto is = [&](int block, auto expected) {
      for (std::size_t i = 0; i < r.count; ++i) {
        const std::int64_t found = one.out[static_cast<std::size_t>(block) * r.count + i];
        if (found != expected(i)) return wrong(one, "word " + std::to_string(i) + " of block " + std::to_string(block));
      }
    };
    if (r.operation == Operation::bcast) is(0, [&](std::size_t i) { return given(r, r.root, 0, i); });
    if ((r.operation == Operation::reduce && root) || r.operation == Operation::allreduce)
      is(0, [&](std::size_t i) { return together(r, n, 0, i); });
    if (r.operation == Operation::scatter) is(0, [&](std::size_t i) { return given(r, r.root, p, i); });
    if (r.operation == Operation::reduce_scatter) is(0, [&](std::size_t i) { return together(r, n, p, i); });
    if (r.operation == Operation::scan) is(0, [&](std::size_t i) { return together(r, p + 1, 0, i); });
    if (r.operation == Operation::exscan && p > 0) is(0, [&](std::size_t i) { return together(r, p, 0, i); });
    for (int q = 0; q < n; ++q) {
      if ((r.operation == Operation::gather && root) || r.operation == Operation::allgather)
        is(q, [&](std::size_t i) { return given(r, q, 0, i); });
      if (r.operation == Operation::alltoall)
        is(q, [&](std::size_t i) { return r.has_edge(q, p) ? given(r, q, p, i) : -1; });
    }
  }

  World& world_;
  const CollectivePlan& plan_;
  const FaultPlan& faults_;
  const int rank_;
  Dice dice_;
  canele_operator_t sum_{};
  canele_group_t* groups_[2] = {nullptr, nullptr};
  std::vector<std::unique_ptr<Pending>> in_flight_;
  int waits_for_ = -1;
  bool given_up_[2] = {false, false};
};

}  // namespace

Outcome run_collectives(const RunOptions& options) {
  Dice dice = Dice(options.seed).split(7);
  World world(choose_world(options, dice));
  const int rounds = options.messages != 0 ? options.messages : static_cast<int>(dice.between(3, 40));
  const CollectivePlan plan(world.options().ranks, rounds, dice.split(21));
  return run_with_own_oracle<CollectiveRank>(
      options, world, dice, std::to_string(rounds) + " collectives",
      [&](const FaultPlan& faults, int rank, Dice own) {
        return std::make_unique<CollectiveRank>(world, plan, faults, rank, own);
      },
      [](const auto& /*ranks*/) {});
}

}  // namespace canele::sim
