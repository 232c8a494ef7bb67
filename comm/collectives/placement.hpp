// SPDX-License-Identifier: BSD-3-Clause
//
// Placement: on which core of a NUMA node the progression of each rank runs, where there is one thread for each.
//
// Who: api/worker_place binds such threads; canele-sim, canele-model, tests. Threads: any; no state.
// Surprise: near is not best. Neighbours in a chain send and receive at the same time; on one core one waits for the
// other.
//
//   8 cores, 6 ranks, cores 3 and 7 left for communication
//     bind       each on its own core              best alone, hides nothing: the computation is there, too
//     numa       0 1 2 3 4 5 on 3 3 7 7 7 7        one nearby; neighbours share
//     odd-even   0 1 2 3 4 5 on 3 7 3 7 3 7        neighbours do not
//
// Denis, Jaeger, Jeannot, Perache, Taboada: Study on progress threads placement and dedicated cores for overlapping MPI
// nonblocking collectives on manycore processor, 2019.
#pragma once

#include <cstdint>
#include <string_view>

namespace canele::comm::collectives::placement {

enum class Policy : std::uint8_t { bind, numa, odd_even };

std::string_view name_of(Policy policy);

/// Core of the node, from 0 on, for the progression of a rank. `cores` are the node's, `ranks` run on it, of which this
/// is number `rank`, from 0 on. If no core is left for communication: its own.
std::uint32_t core_of(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

/// The same as a number among those that are left, from 0 on. There is one, and the policy is not bind.
std::uint32_t left_for(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

/// Core of the node on which the rank itself runs, so that those for communication are spread among them.
std::uint32_t own_core_of(std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

}  // namespace canele::comm::collectives::placement
