// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: which rank owns which tile of the lower triangle, and which other ranks read a finished one.
//
// Any thread may use it, because nothing changes after construction. No rank announces which tiles it reads. Each rank
// derives the readers from the graph, as a task runtime does.
//
//     2-D block-cyclic over a grid of 2 x 2 ranks        L(i,k) is read by the owners of row i, right of column k
//        0                                               (as left factor), and of column i (as right factor):
//        2 3
//        0 1 0                                                  k   i
//        2 3 2 3                                            i   L ▸ ▸ ▸
//                                                                   ▾
//                                                                   ▾
#pragma once

#include <algorithm>
#include <vector>

namespace canele::cholesky {

struct TileIndex {
  int row, column;
  bool operator==(const TileIndex&) const = default;
};

/// Returns the number of rows of the squarest grid for `ranks` ranks. It is at most the number of columns.
inline int squarest_rows(int ranks) {
  int found = 1;
  for (int rows = 1; rows * rows <= ranks; ++rows) {
    if (ranks % rows == 0) found = rows;
  }
  return found;
}

class Layout {
 public:
  /// size: rows of the matrix. tile: rows of a tile (the last tiles may be smaller). The grid's ranks are numbered by
  /// rows. All arguments are at least 1.
  Layout(int size, int tile, int grid_rows, int grid_columns)
      : size_(size), tile_(tile), grid_rows_(grid_rows), grid_columns_(grid_columns) {}

  int size() const { return size_; }
  int tile() const { return tile_; }
  int grid_rows() const { return grid_rows_; }
  int grid_columns() const { return grid_columns_; }
  /// Tiles along one side.
  int tiles() const { return (size_ + tile_ - 1) / tile_; }
  /// first(): first row (or column) of a tile. extent(): its number of rows (or columns).
  int first(int index) const { return index * tile_; }
  int extent(int index) const { return std::min(tile_, size_ - first(index)); }
  /// Index of a tile of the lower triangle among all of them, row by row.
  static int place(TileIndex tile) { return tile.row * (tile.row + 1) / 2 + tile.column; }
  int places() const { return tiles() * (tiles() + 1) / 2; }

  int owner(TileIndex tile) const { return (tile.row % grid_rows_) * grid_columns_ + tile.column % grid_columns_; }

  /// Returns the ranks other than its owner that read tile (i,k) of the factor, ascending.
  std::vector<int> readers(TileIndex factor) const {
    std::vector<int> ranks;
    for (int column = factor.column + 1; column <= factor.row; ++column) ranks.push_back(owner({factor.row, column}));
    for (int row = factor.row; row < tiles(); ++row) ranks.push_back(owner({row, factor.row}));
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::erase(ranks, owner(factor));
    return ranks;
  }

 private:
  int size_, tile_, grid_rows_, grid_columns_;
};

}  // namespace canele::cholesky
