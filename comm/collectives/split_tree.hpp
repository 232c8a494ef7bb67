// SPDX-License-Identifier: BSD-3-Clause
//
// Split trees: how many of the widest levels of a binomial tree the calling thread should do itself.
//
// Who: splits.cpp, canele-model, tests. Threads: any; no state.
// Surprise: for a Node the unit of time is one transfer of the buffer, so nothing has to be measured: the model counts
//     messages. For levels that somebody else has put together it is what theirs is.
//
// Half of all messages of a binomial tree lie in one level, the leaves'. Where all ranks of a node share a few cores
// for communication, a level of F messages takes ceil(F / cores) turns on them, but one on the cores of the
// application, where it cannot be hidden. So the application does the S widest levels, and the rest is hidden behind
// its computation.
//
//   8 ranks, 2 communication cores     messages   on them   on the application's cores
//     level 1: leaves                      4          2         1       S = 1: 1 visible, then 1 + 1 hidden
//     level 2                              2          1         1       S = 0: 2 + 1 + 1 hidden
//     level 3                              1          1         1       S = 3: blocking
//
// Denis, Jaeger, Jeannot, Perache, Taboada: Study on progress threads placement and dedicated cores for overlapping MPI
// nonblocking collectives on manycore processor, 2019. Its equation 4 and its F are misprinted: see the comments there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace canele::comm::collectives::split_tree {

/// `cores` of a node, `ranks` of which run the application; the others communicate.
struct Node {
  std::uint32_t cores = 1, ranks = 1;
};

enum class Sizes : std::uint8_t {
  equal,    ///< broadcast, reduction: every message is the buffer
  doubling  ///< gather, scatter: twice as much on each level away from the leaves
};

/// What one level of a tree takes.
struct Level {
  double visible = 0;  ///< done by the threads that compute, all messages at a time
  double hidden = 0;   ///< done by the cores for communication, beside a computation
};
/// From the leaves' on, with so much computation between call and wait.
double overlapped_time(std::span<const Level> levels, std::uint32_t split, double computation);
/// The split with the least overlapped time, the lower one of equal ones.
std::uint32_t best_split(std::span<const Level> levels, double computation);

/// H: levels of the tree.
std::uint32_t height(std::uint32_t ranks);
/// F: messages on level `level`, from 1, the leaves', on. By direct count: of v ranks v/2 send to another, the others
/// stay.
std::uint32_t messages_on(std::uint32_t ranks, std::uint32_t level);
/// P: cores that communicate.
std::uint32_t communication_cores(const Node& node);
/// C: computation that would hide a blocking collective on all cores, done by fewer: it takes longer.
double computation(const Node& node, Sizes sizes = Sizes::equal);

double blocking_time(std::uint32_t ranks, Sizes sizes = Sizes::equal);
/// With the `split` widest levels on the application's cores.
double nonblocking_time(const Node& node, std::uint32_t split, Sizes sizes = Sizes::equal);
/// That with the computation: what the application does, and then the longer of what is hidden and what hides it.
double overlapped_time(const Node& node, std::uint32_t split, Sizes sizes = Sizes::equal);

/// Without a core for communication: all levels.
std::uint32_t best_split(const Node& node, Sizes sizes = Sizes::equal);

}  // namespace canele::comm::collectives::split_tree
