// SPDX-License-Identifier: BSD-3-Clause
//
// Core model: the schedules of a collective on modelled cores and network cards, while the ranks compute.
//
// One thread; nothing is random. No engine runs here, only its schedules (comm/collectives): all steps, what each waits
// for, and which are for the calling thread. The model decides which core executes a message, and a core executes one
// at a time. With engines: core_engines.hpp.
//
//   a rank's own core   call ─ late steps? ─▶ computation ─▶ wait ─ late steps?      first with reductions and gathers,
//   communication core  ░░ its other steps, and those of all ranks placed on it ░░   last with broadcasts and scatters
//
//   message ready ─┬─ within a node: a copy, on the core of either side, whichever is free first (two copies: on both)
//                  └─ between nodes: the cards carry it; both sides' cores only notice its end
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::sim {

/// Where the steps of a rank run that are not for its calling thread. numa and odd_even follow
/// comm/collectives/placement.hpp. nearest: on the next remaining core after the rank's own (as in the published trace
/// of numa, which differs from its formula). shared: on any remaining core of the node, whichever is free. bind: on the
/// rank's own core.
enum class Placing : std::uint8_t { bind, numa, nearest, odd_even, shared };

struct CoreMachine {
  std::uint32_t nodes = 1, cores = 64, ranks = 51;  ///< cores and ranks of a node
  Placing placing = Placing::shared;
  double byte_ns = 0.1;  ///< copied by a core
  bool two_copies = false;
  double nic_byte_ns = 0.1, nic_latency_ns = 1500;
};

struct CoreCollective {
  std::uint32_t split = 0;    ///< levels that are for the calling thread: late steps
  bool late_first = false;    ///< late steps precede the rank's other steps and its computation; else they follow it.
  double computation_ns = 0;  ///< of each rank, between call and wait
  /// Keeps the levels of a binomial tree from rank 0 apart on the communication cores. 1: the leaves' level first, -1:
  /// last, 0: a message starts when it can.
  int levels_apart = 0;
};

struct CoreTimes {
  double end_ns = 0;   ///< of the last rank
  double busy_ns = 0;  ///< sum over all communication cores
};

/// Returns the node's core for what rank `rank` does not do on its own core. Not for bind and shared.
std::uint32_t communication_core(const CoreMachine& machine, std::uint32_t rank);

/// Simulates a collective that all ranks call at time 0. The schedules are those of nodes * ranks ranks, node by node.
CoreTimes run_on_cores(const CoreMachine& machine, const CoreCollective& collective,
                       const std::vector<comm::collectives::Schedule>& schedules);

}  // namespace canele::sim
