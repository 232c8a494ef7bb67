// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithms: from a rank, a size and an operation to a schedule. And which one is chosen.
//
// Who: api/collective_api.cpp, tests. Threads: any; no state.
// Surprise: what is chosen must be the same on all ranks without a word between them, so it depends on arguments that
//     all give alike, on the group's size, and on what drivers declare - never on what this host has measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/collectives/schedule.hpp"

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

/// As enum canele_algorithm.
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

/// Where the parts of a buffer are; see canele_parts_t. Valid during the call that builds.
struct Parts {
  std::uint64_t length = 0;
  const std::size_t* lengths = nullptr;
  const std::size_t* offsets = nullptr;
  const std::uint64_t* sums = nullptr;  ///< offsets of parts that lie one after the other with lengths of their own
  std::uint64_t length_of(int r) const { return lengths == nullptr ? length : lengths[r]; }
  std::uint64_t offset_of(int r) const {
    if (offsets != nullptr) return offsets[r];
    return lengths == nullptr ? length * static_cast<std::uint64_t>(r) : sums[r];
  }
};

/// What one rank asks for. Of the fields, those that the operation has:
///   bcast           length; the buffer is `output` on all ranks, the root too
///   reduce …        length; allreduce, scan, exscan alike
///   gather          length; on the root `output`
///   scatter         length; on the root `input`
///   allgather       `output`; input is as long as the own part
///   alltoall        `output`, and `input` unless in place
///   reduce_scatter  `input`: how long the parts are (not where: they lie one after the other, wherever they are)
/// In place, steps of this rank never name Space::input: what would be there is in Space::output - reductions and scans
/// at its beginning, gather and allgather at the own part, alltoall at output's parts. Scatter in place, on the root:
/// its own part goes nowhere, and Space::output is not named.
struct Call {
  Operation operation = Operation::barrier;  // these five are compared in one go
  bool commutes = true;
  bool in_place = false;   ///< CANELE_IN_PLACE on this rank
  bool irregular = false;  ///< lengths differ, and not all ranks know all of them: gather and scatter are flat then
  int root = 0;
  int size = 1, rank = 0;
  std::uint64_t length = 0;   ///< bytes: of the buffer (bcast, reductions, scans), of the own part (gather, scatter)
  std::uint64_t element = 1;  ///< bytes of an element: reductions are cut at multiples of it only
  Parts input, output;        ///< bytes
};

/// How it is done: nothing automatic in what choose() returns. In what is asked of it, zeros leave it to the model.
struct Choice {
  Algorithm algorithm = Algorithm::automatic;
  std::uint32_t radix = 0;    ///< of k_nomial, and of a tree that two_phases go along; there 0: 2
  std::uint64_t segment = 0;  ///< 0: whole
  std::uint32_t window = 0;
  std::uint64_t piece = 0;  ///< messages somewhat longer than this go in several; 0: none does. The network's
};

/// What one message costs, as the driver declares it; the same on all ranks.
struct Network {
  std::uint64_t latency_ns = 1000, gap_ns = 300, bytes_per_second = 10'000'000'000;
  unsigned units = 0;       ///< processing units of the one host that has all ranks; 0: they are on several
  std::uint64_t piece = 0;  ///< what leaves at once through memory; 0: there is no such limit
};

/// Whether the operation has it.
bool has(Operation operation, Algorithm algorithm);
std::string_view name_of(Operation operation);
std::string_view name_of(Algorithm algorithm);
Algorithm algorithm_named(std::string_view name);  ///< automatic for a word that names none

/// Fills in what `asked` leaves open. Deterministic, and the same on all ranks. An algorithm that is asked for, that
/// the operation has, but that cannot do this call, is replaced: rings of operators that do not commute by `recursive`,
/// trees of parts that not all ranks know, and Bruck's of unequal parts, by `flat`.
Choice choose(const Call& call, const Choice& asked, const Network& network);
/// Expected time until the last rank is done, ns.
double time_of(const Call& call, const Choice& choice, const Network& network);

/// This rank's part of the collective.
Schedule schedule_of(const Call& call, const Choice& choice);

}  // namespace canele::comm::collectives
