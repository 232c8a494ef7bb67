// SPDX-License-Identifier: BSD-3-Clause
//
// Graph: which task of this rank may run next, given what has finished and what has arrived.
//
// The scheduler calls it under its lock, so one thread at a time uses it. No task exists before it is ready. A tile
// stores how many steps it has had. This number and the available tiles of the factor determine the next step.
// Rejected: a table of all tasks with counts of missing inputs. It takes n³ memory for the same result.
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
  /// Distance from the start of the graph's longest path. The lower it is, the more tasks wait for this one.
  int rank() const { return tile.row + tile.column + step; }
};

struct LessUrgent {
  bool operator()(const Task& a, const Task& b) const { return a.rank() > b.rank(); }
};
/// The most urgent task first.
using ReadyTasks = std::priority_queue<Task, std::vector<Task>, LessUrgent>;

class Graph {
 public:
  Graph(const Layout& layout, int rank);

  /// Appends the tasks that need nothing to `ready`. The functions below append the tasks that become ready, too.
  void start(std::vector<Task>& ready);
  /// Records that `task` has run. If it finishes its tile, the tile is available from then on.
  void finished(const Task& task, std::vector<Task>& ready);
  /// Records that a tile of the factor is available; it stays available.
  void available(TileIndex factor, std::vector<Task>& ready);

  bool done() const { return left_ == 0; }
  /// Returns true if no task of this rank will read column `step` of the factor any more.
  bool column_is_done(int step) const { return left_in_step_[static_cast<std::size_t>(step)] == 0; }

 private:
  struct Tile {
    int steps = -1;  ///< steps that the tile has had; -1: another rank's
    bool queued = false;
    bool available = false;
  };
  Tile& at(TileIndex tile) { return tiles_[static_cast<std::size_t>(Layout::place(tile))]; }
  bool is_available(TileIndex tile) const { return tiles_[static_cast<std::size_t>(Layout::place(tile))].available; }
  void consider(TileIndex tile, std::vector<Task>& ready);

  const Layout& layout_;
  std::vector<Tile> tiles_;
  std::vector<long> left_in_step_;  ///< tasks of this rank that have not run, by step
  long left_ = 0;
};

}  // namespace canele::cholesky
