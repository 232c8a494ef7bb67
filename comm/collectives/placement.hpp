// SPDX-License-Identifier: BSD-3-Clause
//
// Placement: on which core of a NUMA node the progress thread of each rank runs, where each rank has one.
//
// api/worker_place binds such threads; canele-sim, canele-model and the tests use it as well. Stateless: any thread may
// call these functions.
//
// The nearest core is not the best one. Neighbours in a chain send and receive at the same time; on one core, one waits
// for the other.
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

/// Returns the core of the node, from 0 on, for the progress thread of a rank. The node has `cores`, on which `ranks`
/// run; `rank` is the rank's number among them, from 0 on. If no core is left for communication: the rank's own core.
std::uint32_t core_of(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

/// Returns the core's number among the cores left for communication, from 0 on. Requires at least one such core, and a
/// policy other than bind.
std::uint32_t left_for(Policy policy, std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

/// Returns the core of the node on which the rank itself runs. The cores for communication are spread among these.
std::uint32_t own_core_of(std::uint32_t cores, std::uint32_t ranks, std::uint32_t rank);

}  // namespace canele::comm::collectives::placement
