// SPDX-License-Identifier: BSD-3-Clause
//
// Factorisation: one run, from a matrix that has been filled in to its factor in the same memory.
//
// The main thread makes it and runs it. If run() fails on this rank, it ends the job, because the other ranks would
// wait for its tiles.
#pragma once

#include <canele/canele.hpp>
#include <memory>
#include <vector>

#include "exchange.hpp"
#include "kernels.hpp"
#include "layout.hpp"
#include "scheduler.hpp"

namespace canele::cholesky {

/// The tiles of this rank.
class Tiles {
 public:
  Tiles(const Layout& layout, int rank);
  void fill(std::uint64_t seed);
  bool has(TileIndex tile) const { return memory_[place(tile)] != nullptr; }
  Block at(TileIndex tile) const {
    return {memory_[place(tile)].get(), layout_.extent(tile.row), layout_.extent(tile.column)};
  }
  const Layout& layout() const { return layout_; }
  int rank() const { return rank_; }

 private:
  static std::size_t place(TileIndex tile) { return static_cast<std::size_t>(Layout::place(tile)); }
  const Layout& layout_;
  const int rank_;
  std::vector<std::unique_ptr<double[]>> memory_;
};

struct RunOptions {
  Way way;
  int threads = 1;     ///< compute threads
  int look_ahead = 4;  ///< columns
};

/// What one rank reports of a run. Sent as bytes.
struct RankReport {
  double seconds = 0;  ///< between the barriers before and after the run
  Times times;
  std::uint64_t bytes_sent = 0, messages_sent = 0;
  std::uint64_t bytes_forwarded = 0;  ///< of other ranks' tiles; included in bytes_sent
  std::int64_t wide_sends = 0;
};

/// Factorises the matrix. All ranks call it.
RankReport factorise(canele::engine& engine, canele::session& session, Tiles& tiles, const RunOptions& options);

}  // namespace canele::cholesky
