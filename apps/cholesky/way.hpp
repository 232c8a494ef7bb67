// SPDX-License-Identifier: BSD-3-Clause
//
// How a tile goes to several ranks: "sends", or by one multicast of a shape; and what its messages are marked with.
//
// Who: this program, and the simulator's workload of the same name. Threads: any; no state. Surprise: none.
#pragma once

#include <canele/canele.h>

#include <cstdint>
#include <string>
#include <vector>

#include "layout.hpp"

namespace canele::cholesky {

struct Way {
  std::string name;
  bool sends = false;
  canele_shape shape = CANELE_SHAPE_AUTO;
};
/// Throws std::runtime_error for a name that is none.
Way way_of(const std::string& name);
/// "sends, auto, …"
std::vector<std::string> way_names();

inline std::uint64_t tag_of(TileIndex tile) { return static_cast<std::uint64_t>(Layout::place(tile)); }
/// Sooner for what is needed sooner.
inline int priority_of(TileIndex tile) { return -(tile.row + tile.column); }

}  // namespace canele::cholesky
