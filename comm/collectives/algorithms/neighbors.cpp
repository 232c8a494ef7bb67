// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange with neighbours: each edge is a message of its own, and no step needs another.
//
// The slot of a message is its number among the edges between its two positions. So a message never takes the place of
// another, in whatever order they arrive.
#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"

namespace canele::comm::collectives {
namespace {

using Edges = std::span<const canele_edge_t>;
constexpr std::size_t most_compared = 64;  ///< edges of one rank, each with each

/// Returns true if the edge of a rank is a message: not to itself, and not empty.
bool carries_message(const canele_edge_t& edge, int rank) { return edge.position != rank && edge.length != 0; }

/// Returns the number of each edge among those of its position.
std::vector<std::uint32_t> numbers_of(Edges edges) {
  std::vector<std::uint32_t> order(edges.size()), numbers(edges.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto position = [&](std::uint32_t edge) { return edges[edge].position; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return position(a) < position(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (position(order[i]) == position(order[i - 1])) numbers[order[i]] = numbers[order[i - 1]] + 1;
  }
  return numbers;
}

/// Returns the ranges of the edges to the rank itself.
std::vector<Range> own_ranges(Edges edges, int rank, Space space) {
  std::vector<Range> ranges;
  for (const canele_edge_t& edge : edges) {
    if (edge.position == rank) ranges.push_back({space, edge.offset, edge.length});
  }
  return ranges;
}

/// Returns true if each rank that gets a message from this one also sends one to it.
bool each_answers(int rank, Edges sends, Edges receives) {
  const auto answers = [&](const canele_edge_t& send) {
    return !carries_message(send, rank) ||
           std::any_of(receives.begin(), receives.end(), [&](const canele_edge_t& receive) {
             return receive.position == send.position && carries_message(receive, rank);
           });
  };
  return sends.size() <= most_compared && std::all_of(sends.begin(), sends.end(), answers);
}

}  // namespace

Schedule neighbor_exchange(int rank, Edges sends, Edges receives, std::uint32_t inflight_limit) {
  Builder builder;
  builder.inflight_limit(inflight_limit);
  if (each_answers(rank, sends, receives)) builder.waits_for_receivers();
  const auto each_message = [rank](Edges edges, auto visit) {
    const std::vector<std::uint32_t> numbers = numbers_of(edges);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (carries_message(edges[i], rank)) visit(edges[i], numbers[i]);
    }
  };
  each_message(receives, [&](const canele_edge_t& edge, std::uint32_t number) {
    builder.receive(edge.position, number, {Space::output, edge.offset, edge.length});
  });
  each_message(sends, [&](const canele_edge_t& edge, std::uint32_t number) {
    builder.send(edge.position, number, {Space::input, edge.offset, edge.length});
  });
  const std::vector<Range> from = own_ranges(sends, rank, Space::input), to = own_ranges(receives, rank, Space::output);
  assert(from.size() == to.size() && "the caller has checked it");
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].length != 0) builder.copy(from[i], to[i]);
  }
  return std::move(builder).build();
}

}  // namespace canele::comm::collectives
