// SPDX-License-Identifier: BSD-3-Clause
//
// Core engines: a collective by the production engine of each rank, with its worker and its calling thread, on modelled
// cores while the ranks compute.
//
// One thread. The engine decides how a message travels: announced, advertised, and copied in chunks by the thread that
// runs the task. So the unit of time, one message between two ranks with spare cores, is measured here, too.
//
//   rank's own core       main:    call ─▶ computation ─▶ wait, and the levels that are its own
//   communication cores   workers: of all ranks placed there, in turns
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/sim/core_model.hpp"
#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::sim {

struct EngineCollective {
  comm::collectives::Operation operation = comm::collectives::Operation::bcast;
  comm::collectives::Algorithm algorithm = comm::collectives::Algorithm::binomial;
  std::uint64_t size = 2'000'000, segment = 0;  ///< 0: whole
  std::optional<std::uint32_t> split;           ///< nothing: the engine chooses
  double computation_ns = 0;
  int rounds = 3;  ///< the last one counts: the first connects, and the engine learns how long the other ranks compute
  bool shared_copies = false;  ///< CANELE_EXPERT_RECEIVER_INITIATED: both ends copy
};

struct EngineTimes {
  double end_ns = 0;                 ///< from the first call to the last end.
  double call_ns = 0;                ///< the longest call.
  double busy_ns = 0;                ///< communication cores, of all rounds.
  std::vector<std::uint32_t> split;  ///< by rank: the split that the engine has chosen.
  std::string problem;               ///< "" or why there are no times.
};

/// Simulates one node. Placing: as in core_model.hpp.
EngineTimes run_engines_on_cores(const CoreMachine& machine, const EngineCollective& collective);

}  // namespace canele::sim
