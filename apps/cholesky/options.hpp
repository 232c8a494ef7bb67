// SPDX-License-Identifier: BSD-3-Clause
//
// Options of canele-cholesky. Used by one thread.
//
// The grid's default depends on the number of ranks, so it is set after the engine has started.
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

/// Returns false if the program has to end with *code: after an error, or because help was requested.
bool parse_options(int argc, char** argv, Options* options, int* code);

/// Sets the grid. Throws std::runtime_error if the grid does not suit the number of ranks.
void choose_grid(Options& options, int ranks);

}  // namespace canele::cholesky
