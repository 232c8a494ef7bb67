// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithms: from a rank, a size and an operation to a schedule. Also the choice between them.
//
// Used by api/collective_api.cpp and the tests. Stateless: any thread may call these functions.
//
// All ranks must choose the same algorithm without a message between them. So the choice depends only on arguments that
// are equal on all ranks, on the group's size, and on the costs that drivers declare. It never depends on what this
// host has measured.
#pragma once

#include <canele/collectives.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives {

enum class Operation : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  reduce_scatter,
  scan,
  exscan
};

/// Returns true if ranks combine operands.
constexpr bool is_reduction(Operation operation) {
  return operation == Operation::reduce || operation == Operation::allreduce || operation >= Operation::reduce_scatter;
}

/// Same values as enum canele_algorithm.
enum class Algorithm : std::uint8_t {
  automatic,
  flat,
  binomial,
  k_nomial,
  chain,
  dissemination,
  recursive,
  ring,
  bruck,
  two_phases,
  halving_doubling
};

/// Positions of the blocks of a buffer; see canele_parts_t. Valid during the call that builds.
struct Blocks {
  std::uint64_t length = 0;
  const std::size_t* lengths = nullptr;
  const std::size_t* offsets = nullptr;
  const std::uint64_t* sums = nullptr;  ///< offsets of contiguous blocks with individual lengths
  std::uint64_t length_of(int r) const { return lengths == nullptr ? length : lengths[r]; }
  std::uint64_t offset_of(int r) const {
    if (offsets != nullptr) return offsets[r];
    return lengths == nullptr ? length * static_cast<std::uint64_t>(r) : sums[r];
  }
};

/// Arguments of one rank's call. Each operation uses these fields:
///    bcast            length; the buffer is `output` on all ranks, including the root
///    reduce           length; likewise allreduce, scan, exscan
///    gather           length; on the root `output`
///    scatter          length; on the root `input`
///    allgather        `output`; the input has the length of the rank's own block
///    alltoall         `output`, and `input` unless in place
///    reduce_scatter   `input`: only the lengths of the blocks; they are contiguous, whatever the offsets say
/// In place, steps of this rank never name Space::input: the operand is in Space::output instead. Reductions and scans
/// use its beginning, gather and allgather the rank's own block, alltoall the blocks of the output. For scatter in
/// place, on the root, its own block goes nowhere, and Space::output is not named.
struct Call {
  Operation operation = Operation::barrier;  // ScheduleCache compares the first five fields as one word
  bool commutes = true;
  bool in_place = false;   ///< CANELE_IN_PLACE on this rank
  bool irregular = false;  ///< lengths differ and not all ranks know all of them: gather and scatter are flat then
  int root = 0;
  int size = 1, rank = 0;
  std::uint64_t length = 0;   ///< bytes: of the buffer (bcast, reductions, scans), of the own block (gather, scatter).
  std::uint64_t element = 1;  ///< bytes of an element: reductions are cut at multiples of it only.
  Blocks input, output;       ///< bytes
};

/// How a collective is done. The result of choose() leaves nothing automatic. In the choice asked for, zeros leave it
/// to the model.
struct Choice {
  Algorithm algorithm = Algorithm::automatic;
  std::uint32_t radix = 0;    ///< of k_nomial, and of the tree of two_phases, where 0 means 2.
  std::uint64_t segment = 0;  ///< bytes; 0: not cut.
  std::uint32_t inflight_limit = 0;
  /// Bytes; messages slightly longer than this go in several pieces; 0: none do. choose() copies it from the Network.
  std::uint64_t piece = 0;
  bool operator==(const Choice&) const = default;
};

/// The cost of one message, as the driver declares it; equal on all ranks.
struct Network {
  std::uint64_t latency_ns = 1000, gap_ns = 300, bytes_per_second = 10'000'000'000;
  unsigned units = 0;       ///< processing units of the host that has all ranks; 0: the ranks are on several hosts.
  std::uint64_t piece = 0;  ///< bytes that leave at once through memory; 0: there is no such limit
};

/// Returns true if the operation has the algorithm.
bool has(Operation operation, Algorithm algorithm);
std::string_view name_of(Operation operation);
std::string_view name_of(Algorithm algorithm);
Algorithm algorithm_named(std::string_view name);  ///< automatic, for an unknown name

/// Completes what `asked` leaves open. Deterministic, with the same result on all ranks. If `asked` names an algorithm
/// of the operation that cannot do this call, it is replaced. Rings are replaced by `recursive` for operators that do
/// not commute. Trees are replaced by `flat` if not all ranks know the lengths, and Bruck's algorithm for blocks of
/// unequal length.
Choice choose(const Call& call, const Choice& asked, const Network& network);
/// Returns the expected time until the last rank has completed, in ns.
double time_of(const Call& call, const Choice& choice, const Network& network);

/// Builds the schedule of this rank.
Schedule schedule_of(const Call& call, const Choice& choice);

/// Builds the schedule of an exchange with neighbours for the rank at position `rank`; see canele_ineighbor_exchange.
/// The edges to `rank` itself are as many, and as long, in both arrays.
Schedule neighbor_exchange(int rank, std::span<const canele_edge_t> sends, std::span<const canele_edge_t> receives,
                           std::uint32_t inflight_limit);

}  // namespace canele::comm::collectives
