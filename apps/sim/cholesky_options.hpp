// SPDX-License-Identifier: BSD-3-Clause
//
// What can be chosen of a simulated Cholesky. Who: canele-sim. Threads: one. Surprise: none.
#pragma once

#include <cstddef>
#include <string>

namespace canele::sim {

struct CholeskyOptions {
  int tiles = 40;            ///< along one side of the matrix
  int tile = 320;            ///< rows of a tile, of 4 bytes each element
  int cores = 16;            ///< of a rank, that compute
  double core_gflops = 30;   ///< of one of them, in dgemm (sgemm)
  double latency_us = 1.5;   ///< of the network
  double gap_us = 0.1;       ///< between two packets of a rank
  double gigabytes = 3.2;    ///< of the network, a second, each way; infinity is allowed
  double comparison_ns = 0;  ///< what each comparison of a matcher takes; the table makes none
  double test_ns = 0;        ///< 0: a worker; else the rank's own thread tests all it waits for in turn, so long each
  bool shuffled = false;     ///< receives are posted in any order; else in that in which they are needed
  std::string way = "auto";  ///< apps/cholesky/way.hpp
  std::string strategy = "aggregate";

  std::size_t tile_bytes() const { return 4 * static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile); }
};

/// Those that are not as above, for a command line: " --tiles 50 …".
std::string text_of(const CholeskyOptions& options);

}  // namespace canele::sim
