// SPDX-License-Identifier: BSD-3-Clause
//
// Graph: which task of this rank may run next, told by what has finished and what has come.
//
// Who: the scheduler, under its lock. Threads: one at a time.
// Surprise: no task exists before it is ready. A tile knows how many steps it has had; that and the factor's tiles at
//     hand say which one is next. (A table of all tasks with counts of what they miss takes n³ memory for the same.)
//
//     tile (i,j) is updated by column 0, 1, … j-1 of the factor, then finished:
//       step k < j   needs L(i,k) and L(j,k)     dgemm, on the diagonal dsyrk
//       step j       needs L(j,j)                dtrsm, on the diagonal dpotrf, which needs nothing
#pragma once

#include <queue>
#include <vector>

#include "layout.hpp"

namespace canele::cholesky {

struct Task {
  TileIndex tile;
  int step;
  bool finishes() const { return step == tile.column; }
  /// How far from the start of the graph's longest way: the lower, the more others wait for it.
  int rank() const { return tile.row + tile.column + step; }
};

struct LessUrgent {
  bool operator()(const Task& a, const Task& b) const { return a.rank() > b.rank(); }
};
/// The most urgent one first.
using ReadyTasks = std::priority_queue<Task, std::vector<Task>, LessUrgent>;

class Graph {
 public:
  Graph(const Layout& layout, int rank);

  /// The tasks that need nothing. Appends to `ready`, like the others here.
  void start(std::vector<Task>& ready);
  /// `task` has run. If it finishes its tile, that is at hand from now on.
  void finished(const Task& task, std::vector<Task>& ready);
  /// A tile of the factor is at hand; it stays so.
  void at_hand(TileIndex factor, std::vector<Task>& ready);

  bool done() const { return left_ == 0; }
  /// True if no task of this rank will read column `step` of the factor any more.
  bool column_is_done(int step) const { return left_in_step_[static_cast<std::size_t>(step)] == 0; }

 private:
  struct Tile {
    int steps = -1;  ///< that it has had; -1: another rank's
    bool queued = false;
    bool at_hand = false;
  };
  Tile& at(TileIndex tile) { return tiles_[static_cast<std::size_t>(Layout::place(tile))]; }
  bool is_at_hand(TileIndex tile) const { return tiles_[static_cast<std::size_t>(Layout::place(tile))].at_hand; }
  void consider(TileIndex tile, std::vector<Task>& ready);

  const Layout& layout_;
  std::vector<Tile> tiles_;
  std::vector<long> left_in_step_;  ///< tasks of this rank, by step
  long left_ = 0;
};

}  // namespace canele::cholesky
