// SPDX-License-Identifier: BSD-3-Clause
//
// Tables and figure of split trees: what each split costs, over the number of ranks that share the cores of a node. One
// thread.
//
// The model is the engine's own (comm/collectives/split_tree.hpp), the one that chooses at run time. This is one of two
// files here that include engine headers, as apps/perf/matcher* does.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace canele::model {

struct SplitQuestion {
  std::uint32_t cores = 64, from = 0, to = 0;  ///< ranks; 0: half of the cores, one less than the cores
  bool variable = false;                       ///< messages double from level to level
};

/// Returns a row for each number of ranks, where the best split changes, and the best of all. Throws std::runtime_error
/// if there is nothing to show.
nlohmann::json split_tables(const SplitQuestion& question);

void print_split_tables(const nlohmann::json& tables);

/// Returns the overlapped times over the number of ranks, a curve for each split, as SVG.
std::string split_figure(const nlohmann::json& tables);

}  // namespace canele::model
