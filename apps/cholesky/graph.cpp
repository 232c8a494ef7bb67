// SPDX-License-Identifier: BSD-3-Clause
//
// Graph: finds the tasks that a finished or received tile makes ready.
//
// A tile that arrives can make tasks ready only in its row, and in the column with the number of that row.
#include "graph.hpp"

#include <cassert>

namespace canele::cholesky {

Graph::Graph(const Layout& layout, int rank)
    : layout_(layout),
      tiles_(static_cast<std::size_t>(layout.places())),
      left_in_step_(static_cast<std::size_t>(layout.tiles())) {
  for (int row = 0; row < layout.tiles(); ++row) {
    for (int column = 0; column <= row; ++column) {
      if (layout.owner({row, column}) != rank) continue;
      at({row, column}).steps = 0;
      left_ += column + 1;
      for (int step = 0; step <= column; ++step) ++left_in_step_[static_cast<std::size_t>(step)];
    }
  }
}

void Graph::start(std::vector<Task>& ready) { consider({0, 0}, ready); }

void Graph::finished(const Task& task, std::vector<Task>& ready) {
  Tile& tile = at(task.tile);
  assert(tile.queued && tile.steps == task.step);
  tile.queued = false;
  ++tile.steps;
  --left_;
  --left_in_step_[static_cast<std::size_t>(task.step)];
  if (task.finishes()) {
    available(task.tile, ready);
  } else {
    consider(task.tile, ready);
  }
}

void Graph::available(TileIndex factor, std::vector<Task>& ready) {
  assert(!at(factor).available);
  at(factor).available = true;
  for (int column = factor.column + 1; column <= factor.row; ++column) consider({factor.row, column}, ready);
  for (int row = factor.row + 1; row < layout_.tiles(); ++row) consider({row, factor.row}, ready);
}

void Graph::consider(TileIndex index, std::vector<Task>& ready) {
  Tile& tile = at(index);
  if (tile.steps < 0 || tile.steps > index.column || tile.queued) return;
  const int step = tile.steps;
  const bool on_diagonal = index.row == index.column;
  const bool may_run = step < index.column ? is_available({index.row, step}) && is_available({index.column, step})
                                           : on_diagonal || is_available({index.column, index.column});
  if (!may_run) return;
  tile.queued = true;
  ready.push_back({index, step});
}

}  // namespace canele::cholesky
