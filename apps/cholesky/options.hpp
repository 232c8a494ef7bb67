// SPDX-License-Identifier: BSD-3-Clause
//
// Options of canele-cholesky.
//
// Who: main. Threads: one.
// Surprise: the grid's default needs the number of ranks, so it is settled after the engine has started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace canele::cholesky {

struct Options {
  int size = 2000, tile = 320;
  int grid_rows = 0, grid_columns = 0;  ///< 0: the squarest
  int threads = 1, look_ahead = 4, runs = 1;
  std::vector<std::string> ways = {"auto"};
  std::uint64_t seed = 1;
  bool check = true, json = false;
};

/// False if the program should end with *code: an error, or help was asked for.
bool parse_options(int argc, char** argv, Options* options, int* code);

/// Settles the grid. Throws std::runtime_error if it does not suit the number of ranks.
void settle_grid(Options& options, int ranks);

}  // namespace canele::cholesky
