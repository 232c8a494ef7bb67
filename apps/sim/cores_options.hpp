// SPDX-License-Identifier: BSD-3-Clause
//
// Options of collectives on modelled cores. One thread. Ranks are those of a node, not of the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace canele::sim {

struct CoresOptions {
  std::string operation = "reduce", algorithm = "auto";
  std::uint64_t size = 2'000'000;  ///< bytes of the buffer, or of each block.
  std::uint64_t segment = 0;       ///< 0: whole.
  std::uint32_t nodes = 1, cores = 64;
  std::vector<std::uint32_t> ranks;   ///< ranks of a node that compute; empty: from half of the cores to all but two.
  std::vector<std::uint32_t> splits;  ///< values of S; empty: 0 to 3 if there is a tree, else 0.
  std::vector<std::string> placings;  ///< bind, numa, nearest, odd-even, shared; empty: shared.
  double core_gigabytes = 10;         ///< GB that a core copies in a second.
  int copies = 1;                     ///< of each message within a node.
  bool levels_apart = false;          ///< levels of the tree, on the communication cores.
  double computation = 1;             ///< multiple of the time that hides the blocking collective.
  double nic_gigabytes = 10, nic_us = 1.5;  ///< each way, of a node.
  bool engines = false;                     ///< runs the production engine of each rank, not only its schedule.
  bool shared_copies = false;               ///< engines: both ends copy.
  bool json = false;
};

/// Runs the simulation and prints the result. Returns what is wrong with the options, or "".
std::string run_cores(const CoresOptions& options);

}  // namespace canele::sim
