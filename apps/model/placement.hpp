// SPDX-License-Identifier: BSD-3-Clause
//
// Table of placements: on which core the progression of each rank runs, by each policy. One thread.
//
// The formulas are the engine's own (comm/collectives/placement.hpp); see split_tree.hpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace canele::model {

/// Makes the table. Throws std::runtime_error if there are more ranks than cores, or none.
nlohmann::json placement_table(std::uint32_t cores, std::uint32_t ranks);

void print_placement_table(const nlohmann::json& table);

}  // namespace canele::model
