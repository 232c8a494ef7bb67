// SPDX-License-Identifier: BSD-3-Clause
//
// The formulas of placement. As printed in the source, numa sends the last ranks to a core beyond the node if few cores
// are left for communication (62 ranks on 64 cores: core 95). Here these ranks get the last core.
#include "comm/collectives/placement.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm::collectives::placement {
namespace {

/// Returns the core with number `which` of those left for communication: ceil((which + 1) * cores / left) - 1, spread
/// evenly.
std::uint32_t left_core(std::uint32_t cores, std::uint32_t left, std::uint32_t which) {
  const std::uint64_t end = std::uint64_t{which + 1} * cores;
  return static_cast<std::uint32_t>((end + left - 1) / left) - 1;
}

}  // namespace

std::string_view name_of(Policy policy) {
  switch (policy) {
    case Policy::bind:
      return "bind";
    case Policy::numa:
      return "numa";
    case Policy::odd_even:
      break;
  }
  return "odd-even";
}

std::uint32_t core_of(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank) {
  assert(rank < ranks && ranks <= cores);
  const std::uint32_t left = cores - ranks;
  if (policy == Policy::bind || left == 0) return own_core_of(cores, ranks, rank);
  return left_core(cores, left, left_for(policy, cores, ranks, rank));
}

std::uint32_t left_for(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank) {
  assert(policy != Policy::bind && rank < ranks && ranks < cores);
  const std::uint32_t left = cores - ranks;
  if (policy == Policy::odd_even) return rank % left;
  const std::uint64_t rounded = (2 * std::uint64_t{rank} * left + cores) / (2 * std::uint64_t{cores});
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded, left - 1));
}

std::uint32_t own_core_of(std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank) {
  assert(rank < ranks && ranks <= cores);
  const std::uint32_t left = cores - ranks;
  std::uint32_t core = rank;
  for (std::uint32_t which = 0; which < left && left_core(cores, left, which) <= core; ++which) ++core;
  return core;
}

}  // namespace canele::comm::collectives::placement
