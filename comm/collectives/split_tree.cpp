// SPDX-License-Identifier: BSD-3-Clause
//
// The model of split trees. With no core left for communication, the application does everything, as in a blocking
// collective.
#include "comm/collectives/split_tree.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm::collectives::split_tree {
namespace {

/// Time of one message on a level.
double weight(std::uint32_t level, Sizes sizes) {
  return sizes == Sizes::equal ? 1 : static_cast<double>(std::uint64_t{1} << (level - 1));
}

double visible(std::span<const Level> levels, std::uint32_t split) {
  double time = 0;
  for (const Level& level : levels.first(std::min<std::size_t>(split, levels.size()))) time += level.visible;
  return time;
}

double hidden(std::span<const Level> levels, std::uint32_t split) {
  double time = 0;
  for (const Level& level : levels.subspan(std::min<std::size_t>(split, levels.size()))) time += level.hidden;
  return time;
}

/// Assumes at least one core for communication. The callers handle the case without one, in which nothing is hidden.
std::vector<Level> levels_of(const Node& node, Sizes sizes) {
  const std::uint32_t cores = std::max(1U, communication_cores(node));
  std::vector<Level> levels;
  for (std::uint32_t level = 1; level <= height(node.ranks); ++level) {
    const std::uint32_t turns = (messages_on(node.ranks, level) + cores - 1) / cores;
    levels.push_back({weight(level, sizes), turns * weight(level, sizes)});
  }
  return levels;
}

}  // namespace

std::uint32_t height(std::uint32_t ranks) {
  std::uint32_t levels = 0;
  for (std::uint64_t reach = 1; reach < ranks; reach *= 2) ++levels;
  return levels;
}

std::uint32_t messages_on(std::uint32_t ranks, std::uint32_t level) {
  assert(level >= 1);
  std::uint32_t left = ranks;
  for (std::uint32_t below = 1; below < level; ++below) left -= left / 2;
  return left / 2;
}

std::uint32_t communication_cores(const Node& node) {
  assert(node.ranks >= 1 && node.cores >= node.ranks);
  return node.cores - node.ranks;
}

// The paper prints the inverse of the quotient. Its text (fewer ranks compute longer) and its results need this one.
double computation(const Node& node, Sizes sizes) {
  return static_cast<double>(node.cores) / static_cast<double>(node.ranks) * blocking_time(node.cores, sizes);
}

double blocking_time(std::uint32_t ranks, Sizes sizes) {
  return visible(levels_of({ranks, ranks}, sizes), height(ranks));
}

double nonblocking_time(const Node& node, std::uint32_t split, Sizes sizes) {
  if (communication_cores(node) == 0) return blocking_time(node.ranks, sizes);
  const std::vector<Level> levels = levels_of(node, sizes);
  return visible(levels, split) + hidden(levels, split);
}

double overlapped_time(const Node& node, std::uint32_t split, Sizes sizes) {
  if (communication_cores(node) == 0) return blocking_time(node.ranks, sizes) + computation(node, sizes);
  return overlapped_time(levels_of(node, sizes), split, computation(node, sizes));
}

std::uint32_t best_split(const Node& node, Sizes sizes) {
  // Without a core for communication nothing is hidden: the application does all levels.
  if (communication_cores(node) == 0) return height(node.ranks);
  return best_split(levels_of(node, sizes), computation(node, sizes));
}

double overlapped_time(std::span<const Level> levels, std::uint32_t split, double computation) {
  return visible(levels, split) + std::max(computation, hidden(levels, split));
}

std::uint32_t best_split(std::span<const Level> levels, double computation) {
  std::uint32_t best = 0;
  for (std::uint32_t split = 1; split <= levels.size(); ++split) {
    if (overlapped_time(levels, split, computation) < overlapped_time(levels, best, computation)) best = split;
  }
  return best;
}

}  // namespace canele::comm::collectives::split_tree
