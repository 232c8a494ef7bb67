// SPDX-License-Identifier: BSD-3-Clause
//
// Computes how long the schedules of a group take, if messages cost what the model of choose() says. One thread;
// deterministic.
//
// With a latency and a gap of 1 and no other cost, the time is the number of rounds. In a round each rank sends one
// message and receives one.
#pragma once

#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives::model {

struct Costs {
  double latency = 1, gap = 1, byte = 0;
  double memory_byte = 0;  ///< for each byte copied or combined
};

double time_of(const std::vector<Schedule>& schedules, const Costs& costs);

/// Returns a call of a rank of so many, whose root is in the middle; elements have 4 bytes, and all blocks are equal.
Call collective(Operation operation, int size, std::uint64_t length);
/// Returns the schedules of all ranks, if their arguments differ in the rank only.
std::vector<Schedule> schedules_of(Call call, const Choice& choice);

}  // namespace canele::comm::collectives::model
