// SPDX-License-Identifier: BSD-3-Clause
//
// Options of a simulated Cholesky. One thread.
#pragma once

#include <cstddef>
#include <string>

namespace canele::sim {

struct CholeskyOptions {
  int tiles = 40;            ///< along one side of the matrix.
  int tile = 320;            ///< rows of a tile; each element has 4 bytes.
  int cores = 16;            ///< compute cores of a rank.
  double core_gflops = 30;   ///< speed of one core in dgemm (sgemm).
  double latency_us = 1.5;   ///< of the network.
  double gap_us = 0.1;       ///< between two packets of a rank.
  double gigabytes = 3.2;    ///< of the network, per second and direction; infinity is allowed.
  double comparison_ns = 0;  ///< time of each comparison of a matcher; the table makes none.
  double test_ns = 0;        ///< 0: a worker; else the rank's thread tests all it waits for in turn, so long each.
  bool shuffled = false;     ///< receives are posted in random order; else in the order in which they are needed.
  std::string way = "auto";  ///< see apps/cholesky/way.hpp.
  std::string strategy = "aggregate";

  std::size_t tile_bytes() const { return 4 * static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile); }
};

/// Returns the options that differ from the defaults, for a command line: " --tiles 50 …".
std::string text_of(const CholeskyOptions& options);

}  // namespace canele::sim
