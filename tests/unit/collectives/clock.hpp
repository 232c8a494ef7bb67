// SPDX-License-Identifier: BSD-3-Clause
//
// How long the schedules of a group take, if messages cost what the model of choose() says that they cost.
//
// Who: the tests of this directory. Threads: one; no chance in it.
// Surprise: with a latency and a gap of 1 and no other cost the time is the number of rounds, where each rank sends one
//     message and receives one in a round.
#pragma once

#include <vector>

#include "comm/collectives/algorithms.hpp"
#include "comm/collectives/schedule.hpp"

namespace canele::comm::collectives::model {

struct Costs {
  double latency = 1, gap = 1, byte = 0;
  double memory_byte = 0;  ///< copied, or combined
};

double time_of(const std::vector<Schedule>& schedules, const Costs& costs);

/// A call of a rank of so many, whose root is in the middle; elements have 4 bytes, and all parts are equal.
Call collective(Operation operation, int size, std::uint64_t length);
/// The schedules of all ranks, if their arguments differ in the rank only.
std::vector<Schedule> schedules_of(Call call, const Choice& choice);

}  // namespace canele::comm::collectives::model
