// SPDX-License-Identifier: BSD-3-Clause
//
// Core model: the schedules of a collective on modelled cores and network cards, while the ranks compute.
//
// Who: the workload cores. Threads: one; no chance in it.
// Surprise: no engine runs here, only its schedules (comm/collectives): all steps, what each waits for, and which are
//     for the calling thread. What is modelled is who executes a message, and that a core executes one at a time. With
//     engines: core_engines.hpp.
//
//   a rank's own core   call ─ late steps? ─▶ computation ─▶ wait ─ late steps?      first with reductions and gathers,
//   communication core  ░░ its other steps, and those of all ranks placed on it ░░   last with broadcasts and scatters
//
//   message ready ─┬─ within a node: a copy, on the core of either side, whichever is free first (two copies: on both)
//                  └─ between nodes: the cards carry it; both sides' cores only notice its end
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/schedule.hpp"

namespace canele::sim {

/// Where the steps of a rank run that are not for its calling thread: by comm/collectives/placement.hpp; on the next
/// core after its own that is left (what the published trace of numa shows, other than its formula); or on any core of
/// the node that is left, whichever is free.
enum class Placing : std::uint8_t { bind, numa, nearest, odd_even, shared };

struct CoreMachine {
  std::uint32_t nodes = 1, cores = 64, ranks = 51;  ///< of a node
  Placing placing = Placing::shared;
  double byte_ns = 0.1;  ///< copied by a core
  bool two_copies = false;
  double nic_byte_ns = 0.1, nic_latency_ns = 1500;
};

struct CoreCourse {
  std::uint32_t split = 0;  ///< levels that are for the calling thread: late steps
  bool late_first = false;  ///< late steps come before the others of their rank, and before it computes; else after it
  double computation_ns = 0;  ///< of each rank, between call and wait
  /// Of a binomial tree from rank 0: levels are kept apart on the communication cores. 1: the leaves' first, -1: last,
  /// 0: a message starts when it can.
  int levels_apart = 0;
};

struct CoreTimes {
  double end_ns = 0;   ///< of the last rank
  double busy_ns = 0;  ///< of all communication cores together
};

/// Of the node, for what rank number `rank` of it does not do on its own core; neither bind nor shared.
std::uint32_t communication_core(const CoreMachine& machine, std::uint32_t rank);

/// All ranks call at time 0. The schedules are those of nodes * ranks ranks, node by node.
CoreTimes run_on_cores(const CoreMachine& machine, const CoreCourse& course,
                       const std::vector<comm::collectives::Schedule>& schedules);

}  // namespace canele::sim
