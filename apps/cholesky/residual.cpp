// SPDX-License-Identifier: BSD-3-Clause
//
// Residual.
//
// The upper half of diagonal tiles is not part of L. The matrix is symmetric, so its upper half mirrors the lower half.
#include "residual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace canele::cholesky {
namespace {

constexpr int trials = 4;
constexpr std::uint64_t sum_tag = std::uint64_t{1} << 40, total_tag = sum_tag + 1;  // not the tag of any tile

using Vector = std::vector<double>;

/// Adds up one vector of each rank. Every rank gets the sum.
void sum_over_ranks(canele::session& session, int rank, int ranks, Vector& values) {
  if (ranks == 1) return;
  if (rank != 0) {
    session.send(0, sum_tag, values);
    session.recv(0, total_tag, values);
    return;
  }
  Vector other(values.size());
  for (int source = 1; source < ranks; ++source) {
    session.recv(source, sum_tag, other);
    std::transform(values.begin(), values.end(), other.begin(), values.begin(), std::plus<>());
  }
  std::vector<int> others(static_cast<std::size_t>(ranks - 1));
  std::iota(others.begin(), others.end(), 1);
  session.imulticast(others, total_tag, values).wait();
}

/// Calls visit(row, column, value) for the elements of L that this rank has.
template <typename Visit>
void for_each_of_factor(const Tiles& tiles, Visit visit) {
  const Layout& layout = tiles.layout();
  for (int i = 0; i < layout.tiles(); ++i) {
    for (int j = 0; j <= i; ++j) {
      if (!tiles.has({i, j})) continue;
      const Block tile = tiles.at({i, j});
      for (int column = 0; column < tile.columns; ++column) {
        for (int row = i == j ? column : 0; row < tile.rows; ++row) {
          visit(static_cast<std::size_t>(layout.first(i) + row), static_cast<std::size_t>(layout.first(j) + column),
                tile.values[static_cast<std::ptrdiff_t>(column) * tile.rows + row]);
        }
      }
    }
  }
}

/// Calls visit(row, column, value) for this rank's elements of the matrix below and on the diagonal.
template <typename Visit>
void for_each_of_matrix(const Tiles& tiles, std::uint64_t seed, Visit visit) {
  const int size = tiles.layout().size();
  for_each_of_factor(tiles, [&](std::size_t row, std::size_t column, double) {
    visit(row, column, element(seed, size, static_cast<int>(row), static_cast<int>(column)));
  });
}

double largest(const Vector& values) {
  double most = 0;
  for (const double value : values) {
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(value));
  }
  return most;
}

/// Returns random signs, equal on all ranks.
Vector random_signs(std::uint64_t seed, int trial, std::size_t size) {
  Vector signs(size);
  for (std::size_t i = 0; i < size; ++i) {
    signs[i] = element(seed + 1, 0, trial - trials, static_cast<int>(i)) < 0 ? -1.0 : 1.0;
  }
  return signs;
}

}  // namespace

double residual(canele::session& session, const Tiles& tiles, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(tiles.layout().size());
  const int ranks = canele_size(canele_session_engine(session.native()));
  const auto sum = [&](Vector& values) { sum_over_ranks(session, tiles.rank(), ranks, values); };
  Vector norm(size);
  for_each_of_matrix(tiles, seed, [&](std::size_t row, std::size_t column, double value) {
    norm[row] += std::abs(value);
    if (row != column) norm[column] += std::abs(value);
  });
  sum(norm);
  double worst = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Vector x = random_signs(seed, trial, size);
    Vector y(size), difference(size);
    for_each_of_factor(tiles, [&](std::size_t row, std::size_t column, double value) { y[column] += value * x[row]; });
    sum(y);
    for_each_of_factor(
        tiles, [&](std::size_t row, std::size_t column, double value) { difference[row] += value * y[column]; });
    for_each_of_matrix(tiles, seed, [&](std::size_t row, std::size_t column, double value) {
      difference[row] -= value * x[column];
      if (row != column) difference[column] -= value * x[row];
    });
    sum(difference);
    worst = std::max(worst, largest(difference));
  }
  return worst / (static_cast<double>(size) * std::numeric_limits<double>::epsilon() * largest(norm));
}

}  // namespace canele::cholesky
