// SPDX-License-Identifier: BSD-3-Clause
//
// Shapes of a multicast.
//
// The model walks the tree once, position by position: parents come before their children.
#include "comm/multicast/shape.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace canele::comm::multicast {
namespace {

constexpr std::array<std::string_view, 6> shape_names = {"auto", "flat", "chain", "binomial", "4-nomial", "8-nomial"};

std::uint32_t radix_of(Shape shape) { return shape == Shape::eight_nomial ? 8 : shape == Shape::four_nomial ? 4 : 2; }

}  // namespace

std::string_view name_of(Shape shape) { return shape_names[static_cast<std::size_t>(shape)]; }

Shape shape_named(std::string_view name) {
  const auto found = std::find(shape_names.begin(), shape_names.end(), name);
  return found == shape_names.end() ? Shape::automatic : static_cast<Shape>(found - shape_names.begin());
}

std::uint32_t parent_of(Shape shape, std::uint32_t p) {
  if (shape == Shape::flat || shape == Shape::automatic) return 0;
  if (shape == Shape::chain) return p - 1;
  const std::uint64_t radix = radix_of(shape);
  std::uint64_t round = 1;
  while (round * radix <= p) round *= radix;
  return static_cast<std::uint32_t>(p % round);
}

double time_of(Shape shape, std::uint32_t count, std::uint64_t size, const strategies::Costs& link, bool rendezvous,
               std::uint64_t piece) {
  struct Position {
    double first = 0, rate = 0, last = 0;  // when its first piece, and all, are there, in ns; bytes per ns that come in
    std::uint32_t children = 0;
  };
  std::vector<Position> at(count + 1);
  for (std::uint32_t p = 1; p <= count; ++p) ++at[parent_of(shape, p)].children;
  const double bandwidth = static_cast<double>(link.bytes_per_second) / 1e9;
  const auto latency = static_cast<double>(link.latency_ns);
  const double bytes = std::max<double>(1, static_cast<double>(size));
  const double some = std::min(bytes, static_cast<double>(piece));
  at[0].rate = bandwidth;
  double end = 0;
  for (std::uint32_t p = 1; p <= count; ++p) {
    const Position& parent = at[parent_of(shape, p)];
    Position& own = at[p];
    own.rate = std::min(parent.rate, bandwidth / parent.children);
    own.first = parent.first + latency + some / (bandwidth / parent.children);
    own.last = std::max(own.first + (bytes - some) / own.rate, parent.last + latency);
    end = std::max(end, own.last);
  }
  // The root announces to all destinations, one after the other. A destination with another parent requests the
  // data from it while the data is on its way.
  const double announced = static_cast<double>(link.gap_ns) * count;
  return end + announced + (rendezvous ? 2 * latency : 0);
}

Shape choose(std::uint32_t count, std::uint64_t size, const strategies::Costs& link, std::uint64_t eager,
             std::uint64_t piece) {
  if (count < 2 || count > most_destinations) return Shape::flat;
  Shape best = Shape::flat;
  double least = time_of(Shape::flat, count, size, link, size > eager, piece);
  for (const Shape shape : shapes) {
    if (shape == Shape::flat) continue;
    const double time = time_of(shape, count, size, link, true, piece);
    if (time >= least) continue;
    least = time;
    best = shape;
  }
  return best;
}

}  // namespace canele::comm::multicast
