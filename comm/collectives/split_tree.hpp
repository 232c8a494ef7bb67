// SPDX-License-Identifier: BSD-3-Clause
//
// Split trees: how many of the widest levels of a binomial tree the calling thread should do itself.
//
// Used by split_policy.cpp, canele-model and the tests. Stateless: any thread may call it.
//
// For a Node, the unit of time is one transfer of the buffer: the model counts messages, so nothing has to be measured.
// For a list of levels, the unit is the one in which the caller has filled them.
//
// Half of all messages of a binomial tree lie on one level, that of the leaves. Where all ranks of a node share a few
// cores for communication, a level of F messages takes ceil(F / cores) turns on these cores. It takes only one turn on
// the cores of the application, where it cannot be hidden. So the application does the S widest levels, and the other
// levels are hidden behind its computation.
//
//   8 ranks, 2 communication cores     messages   on them   on the application's cores
//     level 1: leaves                      4          2         1       S = 1: 1 visible, then 1 + 1 hidden
//     level 2                              2          1         1       S = 0: 2 + 1 + 1 hidden
//     level 3                              1          1         1       S = 3: blocking
//
// Denis, Jaeger, Jeannot, Perache, Taboada: Study on progress threads placement and dedicated cores for overlapping MPI
// nonblocking collectives on manycore processor, 2019. Its equation 4 (computation()) and its F (messages_on()) are
// misprinted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace canele::comm::collectives::split_tree {

/// `cores` of a node, of which `ranks` run the application; the other cores communicate.
struct Node {
  std::uint32_t cores = 1, ranks = 1;
};

enum class Sizes : std::uint8_t {
  equal,    ///< broadcast, reduction: every message has the length of the buffer
  doubling  ///< gather, scatter: the length doubles on each level away from the leaves
};

/// Time that one level of a tree takes.
struct Level {
  double visible = 0;  ///< done by the computing threads, all messages at the same time
  double hidden = 0;   ///< done by the cores for communication, beside a computation
};
/// Returns the time of all levels, in the order from the leaves on, with that much computation between call and wait.
double overlapped_time(std::span<const Level> levels, std::uint32_t split, double computation);
/// Returns the split with the least overlapped time; of equal splits, the lowest.
std::uint32_t best_split(std::span<const Level> levels, double computation);

/// H: number of levels of the tree.
std::uint32_t height(std::uint32_t ranks);
/// F: number of messages on level `level`; level 1 is that of the leaves. A direct count: of v ranks, v/2 send to
/// another rank, and the remaining ranks form the next level.
std::uint32_t messages_on(std::uint32_t ranks, std::uint32_t level);
/// P: number of cores that communicate.
std::uint32_t communication_cores(const Node& node);
/// C: computation time that would hide a blocking collective on all cores. It is done by fewer cores, so it takes
/// longer.
double computation(const Node& node, Sizes sizes = Sizes::equal);

double blocking_time(std::uint32_t ranks, Sizes sizes = Sizes::equal);
/// Time with the `split` widest levels on the application's cores.
double nonblocking_time(const Node& node, std::uint32_t split, Sizes sizes = Sizes::equal);
/// Time including the computation: the application's levels, then the longer of the hidden levels and the computation.
double overlapped_time(const Node& node, std::uint32_t split, Sizes sizes = Sizes::equal);

/// Returns the best split. Without a core for communication: all levels.
std::uint32_t best_split(const Node& node, Sizes sizes = Sizes::equal);

}  // namespace canele::comm::collectives::split_tree
