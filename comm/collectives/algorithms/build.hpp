// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithms by name: each adds the steps of one rank to a plan.
//
// Used by algorithms.cpp and by one another. Stateless: any thread may call these functions.
//
// Each function has to be right only for its own rank. The tests check that the sends and receives of all ranks fit
// together (tests/unit/collectives: a model runs all ranks of a group in every order).
#pragma once

#include <vector>

#include "comm/collectives/algorithms/plan.hpp"

namespace canele::comm::collectives {

/// Barriers use no memory, so they need no plan: their messages are empty, and the needs between them are the purpose.
Schedule barrier_dissemination(const Call& call);
Schedule barrier_flat(const Call& call);
Schedule barrier_two_phases(const Call& call, const Choice& choice);

void bcast_tree(Plan& plan, const Choice& choice);
void bcast_two_phases(Plan& plan);
void reduce_tree(Plan& plan, const Choice& choice);
void reduce_two_phases(Plan& plan);

void allreduce_recursive(Plan& plan);
void allreduce_flat(Plan& plan);
void allreduce_halving_doubling(Plan& plan);
void allreduce_ring(Plan& plan);
void allreduce_two_phases(Plan& plan, const Choice& choice);

void gather_flat(Plan& plan);
void gather_tree(Plan& plan, const Choice& choice);
void scatter_flat(Plan& plan);
void scatter_tree(Plan& plan, const Choice& choice);

void allgather_recursive(Plan& plan);
void allgather_flat(Plan& plan);
void allgather_ring(Plan& plan);
void allgather_bruck(Plan& plan);
void allgather_two_phases(Plan& plan, const Choice& choice);

void alltoall_flat(Plan& plan, const Choice& choice);
void alltoall_bruck(Plan& plan);

void reduce_scatter_recursive(Plan& plan);
void reduce_scatter_flat(Plan& plan);
/// Each rank sends to each other rank its block of `blocks`, and combines what it receives. Also an allreduce, where
/// each block is the whole vector.
void reduce_from_each(Plan& plan, const std::vector<Range>& blocks, const Range& result);
void reduce_scatter_ring(Plan& plan);
void reduce_scatter_two_phases(Plan& plan, const Choice& choice);

// exclusive: exscan
void scan_recursive(Plan& plan, bool exclusive);
void scan_chain(Plan& plan, const Choice& choice, bool exclusive);

/// Limit in bytes, as in MPICH. From this length on, broadcasts that scatter pass the pieces around a ring. They also
/// do so where doubling would need a power of two; otherwise they double.
inline constexpr std::uint64_t ring_from = 512 * 1024;
inline bool in_a_ring(int size, std::uint64_t length) { return (size & (size - 1)) != 0 || length >= ring_from; }

}  // namespace canele::comm::collectives
