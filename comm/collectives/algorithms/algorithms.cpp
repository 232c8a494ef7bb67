// SPDX-License-Identifier: BSD-3-Clause
//
// Names of operations and algorithms, which operation has which algorithm, and the construction of a schedule. A group
// of one rank has a plan like any other; its algorithms reduce to a copy, or to nothing.
#include "comm/collectives/algorithms/algorithms.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/plan.hpp"

namespace canele::comm::collectives {
namespace {

constexpr std::array<std::string_view, 11> operation_names = {"barrier",        "bcast",   "reduce",    "allreduce",
                                                              "gather",         "scatter", "allgather", "alltoall",
                                                              "reduce_scatter", "scan",    "exscan"};
constexpr std::array<std::string_view, 11> algorithm_names = {"auto",  "flat",          "binomial",        "k-nomial",
                                                              "chain", "dissemination", "recursive",       "ring",
                                                              "bruck", "two-phases",    "halving-doubling"};

constexpr std::uint32_t bits(std::initializer_list<Algorithm> algorithms) {
  std::uint32_t all = 0;
  for (const Algorithm algorithm : algorithms) all |= 1U << static_cast<unsigned>(algorithm);
  return all;
}

/// Indexed by operation.
constexpr std::array<std::uint32_t, 11> had_by = {
    bits({Algorithm::flat, Algorithm::dissemination, Algorithm::two_phases}),
    bits({Algorithm::flat, Algorithm::binomial, Algorithm::k_nomial, Algorithm::chain, Algorithm::two_phases}),
    bits({Algorithm::flat, Algorithm::binomial, Algorithm::k_nomial, Algorithm::chain, Algorithm::two_phases}),
    bits({Algorithm::flat, Algorithm::recursive, Algorithm::ring, Algorithm::two_phases, Algorithm::halving_doubling}),
    bits({Algorithm::flat, Algorithm::binomial}),
    bits({Algorithm::flat, Algorithm::binomial}),
    bits({Algorithm::flat, Algorithm::recursive, Algorithm::ring, Algorithm::bruck, Algorithm::two_phases}),
    bits({Algorithm::flat, Algorithm::bruck}),
    bits({Algorithm::flat, Algorithm::recursive, Algorithm::ring, Algorithm::two_phases}),
    bits({Algorithm::recursive, Algorithm::chain}),
    bits({Algorithm::recursive, Algorithm::chain})};

Schedule barrier(const Call& call, const Choice& choice) {
  if (choice.algorithm == Algorithm::flat) return barrier_flat(call);
  return choice.algorithm == Algorithm::two_phases ? barrier_two_phases(call, choice) : barrier_dissemination(call);
}

void plan_allreduce(Plan& plan, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::flat:
      return allreduce_flat(plan);
    case Algorithm::ring:
      return allreduce_ring(plan);
    case Algorithm::two_phases:
      return allreduce_two_phases(plan, choice);
    case Algorithm::halving_doubling:
      return allreduce_halving_doubling(plan);
    default:
      return allreduce_recursive(plan);
  }
}

void plan_allgather(Plan& plan, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::flat:
      return allgather_flat(plan);
    case Algorithm::ring:
      return allgather_ring(plan);
    case Algorithm::bruck:
      return allgather_bruck(plan);
    case Algorithm::two_phases:
      return allgather_two_phases(plan, choice);
    default:
      return allgather_recursive(plan);
  }
}

void plan_reduce_scatter(Plan& plan, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::flat:
      return reduce_scatter_flat(plan);
    case Algorithm::ring:
      return reduce_scatter_ring(plan);
    case Algorithm::two_phases:
      return reduce_scatter_two_phases(plan, choice);
    default:
      return reduce_scatter_recursive(plan);
  }
}

void plan_scan(Plan& plan, const Choice& choice) {
  const bool exclusive = plan.call().operation == Operation::exscan;
  choice.algorithm == Algorithm::chain ? scan_chain(plan, choice, exclusive) : scan_recursive(plan, exclusive);
}

void plan_rooted(Plan& plan, const Choice& choice) {
  const bool flat = choice.algorithm == Algorithm::flat, two_phases = choice.algorithm == Algorithm::two_phases;
  switch (plan.call().operation) {
    case Operation::bcast:
      return two_phases ? bcast_two_phases(plan) : bcast_tree(plan, choice);
    case Operation::reduce:
      return two_phases ? reduce_two_phases(plan) : reduce_tree(plan, choice);
    case Operation::gather:
      return flat ? gather_flat(plan) : gather_tree(plan, choice);
    default:
      return flat ? scatter_flat(plan) : scatter_tree(plan, choice);
  }
}

}  // namespace

bool has(Operation operation, Algorithm algorithm) {
  return (had_by[static_cast<std::size_t>(operation)] & bits({algorithm})) != 0;
}

std::string_view name_of(Operation operation) { return operation_names[static_cast<std::size_t>(operation)]; }
std::string_view name_of(Algorithm algorithm) { return algorithm_names[static_cast<std::size_t>(algorithm)]; }

Algorithm algorithm_named(std::string_view name) {
  const auto found = std::find(algorithm_names.begin(), algorithm_names.end(), name);
  return found == algorithm_names.end() ? Algorithm::automatic
                                        : static_cast<Algorithm>(found - algorithm_names.begin());
}

Schedule schedule_of(const Call& call, const Choice& choice) {
  assert(call.size > 0 && call.rank >= 0 && call.rank < call.size && call.root >= 0 && call.root < call.size);
  assert(has(call.operation, choice.algorithm) && "choose() leaves nothing automatic");
  if (call.operation == Operation::barrier) {
    return barrier(call, choice);
  }
  Plan plan(call, choice.piece);
  switch (call.operation) {
    case Operation::allreduce:
      plan_allreduce(plan, choice);
      break;
    case Operation::allgather:
      plan_allgather(plan, choice);
      break;
    case Operation::reduce_scatter:
      plan_reduce_scatter(plan, choice);
      break;
    case Operation::alltoall:
      choice.algorithm == Algorithm::bruck ? alltoall_bruck(plan) : alltoall_flat(plan, choice);
      break;
    case Operation::scan:
    case Operation::exscan:
      plan_scan(plan, choice);
      break;
    default:
      plan_rooted(plan, choice);
  }
  return std::move(plan).finish();
}

}  // namespace canele::comm::collectives
