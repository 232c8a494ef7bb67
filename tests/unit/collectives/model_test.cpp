// SPDX-License-Identifier: BSD-3-Clause
//
// The model itself: it finds faults of schedules. One thread.
//
// Every single dependency of some schedules is removed, one at a time; the model must detect each removal.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/collectives/world.hpp"

namespace canele::comm::collectives::model {
namespace {

struct Dependency {
  StepId need, step;
};

std::vector<Dependency> dependencies_of(const Schedule& schedule) {
  std::vector<Dependency> all;
  for (StepId id = 0; id < schedule.steps().size(); ++id) {
    for (const StepId after : schedule.after(schedule.steps()[id])) all.push_back({id, after});
  }
  return all;
}

/// Returns the schedule without one dependency.
Schedule without(const Schedule& schedule, const Dependency& dropped) {
  Builder builder;
  const auto steps = schedule.steps();
  builder.scratch(schedule.scratch_bytes());
  builder.inflight_limit(schedule.inflight_limit());
  for (const Step& step : steps) {
    switch (step.action) {
      case Action::send:
        builder.send(step.peer, step.slot, step.from);
        break;
      case Action::receive:
        builder.receive(step.peer, step.slot, step.to);
        break;
      case Action::copy:
        builder.copy(step.from, step.to);
        break;
      case Action::combine:
        builder.combine(step.from, step.to);
        break;
      case Action::append:
        builder.append(step.from, step.to);
        break;
      case Action::join:
        builder.join({});
        break;
    }
  }
  for (const auto& [need, step] : dependencies_of(schedule)) {
    if (need != dropped.need || step != dropped.step) builder.add_need(step, need);
  }
  return std::move(builder).build();
}

/// Returns whether `step` still waits for `need` by way of other steps.
bool waits_anyhow(const Schedule& schedule, StepId step, StepId need) {
  std::vector<bool> behind(schedule.steps().size());
  for (StepId id = need; id < step; ++id) {
    if (id != need && !behind[id]) continue;
    for (const StepId after : schedule.after(schedule.steps()[id])) {
      if (id != need || after != step) behind[after] = true;
    }
  }
  return behind[step];
}

/// Returns whether some order of the first `seeds` shows a fault. In half of them the step of the dropped dependency is
/// slow.
bool found(const Case& what, int rank, const Dependency& dropped, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    World world(what, seed);
    Schedule& schedule = world.ranks()[static_cast<std::size_t>(rank)].schedule;
    schedule = without(schedule, dropped);
    if (!world.run(seed, seed % 2 == 0 ? rank : -1, seed % 2 == 0 ? dropped.need : no_step).empty()) return true;
  }
  return false;
}

Choice choice_of(Algorithm algorithm, std::uint64_t segment = 0, std::uint32_t radix = 0) {
  Choice choice;
  choice.radix = radix;
  choice.algorithm = algorithm;
  choice.segment = segment;
  return choice;
}

TEST(Model, SeesEveryDependencyThatIsMissing) {
  const Case cases[] = {
      {Operation::bcast, choice_of(Algorithm::binomial, 20), 6, 2, 50, false, Element::sum, Shape::equal},
      {Operation::bcast, choice_of(Algorithm::two_phases), 5, 1, 50, false, Element::sum, Shape::equal},
      // (From both sides of the root the order would not matter: associative operations give the same result.)
      {Operation::reduce, choice_of(Algorithm::binomial), 7, 6, 9, true, Element::affine, Shape::equal},
      {Operation::reduce, choice_of(Algorithm::k_nomial, 0, 3), 8, 0, 9, false, Element::affine, Shape::equal},
      {Operation::reduce, choice_of(Algorithm::chain, 12), 4, 0, 9, false, Element::sum, Shape::equal},
      {Operation::reduce, choice_of(Algorithm::two_phases), 6, 2, 9, true, Element::affine, Shape::equal},
      {Operation::allreduce, choice_of(Algorithm::recursive), 3, 0, 9, true, Element::affine, Shape::equal},
      {Operation::allreduce, choice_of(Algorithm::recursive), 8, 0, 9, true, Element::sum, Shape::equal},
      {Operation::allreduce, choice_of(Algorithm::halving_doubling), 6, 0, 9, false, Element::affine, Shape::equal},
      {Operation::allreduce, choice_of(Algorithm::ring), 5, 0, 10, false, Element::sum, Shape::equal},
      {Operation::allreduce, choice_of(Algorithm::ring), 5, 0, 10, true, Element::sum, Shape::equal},
      {Operation::gather, choice_of(Algorithm::binomial), 7, 2, 9, false, Element::sum, Shape::equal},
      {Operation::gather, choice_of(Algorithm::binomial), 6, 1, 9, true, Element::sum, Shape::spread},
      {Operation::scatter, choice_of(Algorithm::binomial), 7, 2, 9, false, Element::sum, Shape::spread},
      {Operation::allgather, choice_of(Algorithm::recursive), 6, 0, 9, false, Element::sum, Shape::apart},
      {Operation::allgather, choice_of(Algorithm::bruck), 6, 0, 9, true, Element::sum, Shape::equal},
      {Operation::alltoall, choice_of(Algorithm::flat), 4, 0, 9, true, Element::sum, Shape::equal},
      {Operation::alltoall, choice_of(Algorithm::bruck), 5, 0, 9, true, Element::sum, Shape::equal},
      {Operation::reduce_scatter, choice_of(Algorithm::recursive), 6, 0, 9, true, Element::affine, Shape::equal},
      {Operation::scan, choice_of(Algorithm::recursive), 6, 0, 9, true, Element::affine, Shape::equal},
      {Operation::exscan, choice_of(Algorithm::recursive), 6, 0, 9, true, Element::affine, Shape::equal},
      {Operation::exscan, choice_of(Algorithm::chain, 12), 5, 0, 9, true, Element::affine, Shape::equal},
  };
  int seen = 0, needless = 0;
  for (const Case& what : cases) {
    for (int rank = 0; rank < what.size; ++rank) {
      const Schedule schedule = World(what, 1).ranks()[static_cast<std::size_t>(rank)].schedule;
      for (const Dependency& dropped : dependencies_of(schedule)) {
        if (waits_anyhow(schedule, dropped.step, dropped.need)) {
          ++needless;
          continue;
        }
        EXPECT_TRUE(found(what, rank, dropped, 4000))
            << what.text() << ", rank " << rank << ", step " << dropped.step << " without " << dropped.need;
        ++seen;
      }
    }
  }
  // A plan leaves out most of the dependencies that follow from others.
  EXPECT_LT(needless * 20, seen) << needless << " of " << seen;
  EXPECT_GT(seen, 600);
}

/// Runs two ranks with their steps, and four bytes of memory each.
std::string run_pair(Builder first, Builder second) {
  std::vector<Rank> ranks(2);
  ranks[0].schedule = std::move(first).build();
  ranks[1].schedule = std::move(second).build();
  for (Rank& rank : ranks) {
    rank.input.resize(4);
    rank.output.resize(4);
  }
  return Model(ranks, operator_of(Element::sum), 7).run();
}

constexpr Range given{Space::input, 0, 4}, taken{Space::output, 0, 4};

TEST(Model, SeesMessagesThatDoNotMatch) {
  {
    Builder first, second;
    first.send(1, 3, given);
    second.receive(0, 3, taken);
    EXPECT_EQ(run_pair(std::move(first), std::move(second)), "");
  }
  {
    Builder first, second;
    first.send(1, 3, given);
    second.receive(0, 4, taken);
    EXPECT_NE(run_pair(std::move(first), std::move(second)).find("hangs"), std::string::npos);
  }
  {
    Builder first, second;
    first.send(1, 3, given);
    second.receive(0, 3, taken.slice(0, 3));
    EXPECT_NE(run_pair(std::move(first), std::move(second)).find("of 4 bytes, not 3"), std::string::npos);
  }
  {
    Builder first, second;
    const StepId once = first.send(1, 3, given);
    first.send(1, 3, given, {once});
    second.receive(0, 3, taken);
    EXPECT_NE(run_pair(std::move(first), std::move(second)), "");
  }
}

TEST(Model, SeesMessagesThatNobodyReceives) {
  // Looks for a seed whose sends end before they are received.
  int hangs = 0, left = 0;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    std::vector<Rank> ranks(2);
    Builder builder;
    builder.send(1, 0, {});
    ranks[0].schedule = std::move(builder).build();
    const std::string wrong = Model(ranks, operator_of(Element::sum), seed).run();
    hangs += wrong.find("hangs") != std::string::npos ? 1 : 0;
    left += wrong.find("left over") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(hangs, 0);
  EXPECT_GT(left, 0);
  EXPECT_EQ(hangs + left, 19);
}

TEST(Model, SeesRanksThatWaitForEachOther) {
  Builder first, second;
  first.send(1, 0, given, {first.receive(1, 0, taken)});
  second.send(0, 0, given, {second.receive(0, 0, taken)});
  EXPECT_NE(run_pair(std::move(first), std::move(second)).find("hangs: 0 of 2"), std::string::npos);
}

TEST(Model, SeesWhatIsBeyondMemory) {
  Builder first, second;
  first.send(1, 0, {Space::input, 2, 4});
  second.receive(0, 0, taken);
  EXPECT_NE(run_pair(std::move(first), std::move(second)).find("beyond"), std::string::npos);
}

}  // namespace
}  // namespace canele::comm::collectives::model
