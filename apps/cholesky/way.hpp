// SPDX-License-Identifier: BSD-3-Clause
//
// How a tile goes to several ranks: by single sends ("sends"), or by one multicast of a shape. Also the tag and the
// priority of its messages.
//
// Used by this program, and by the simulator's workload of the same name. Any thread; no state.
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
/// Returns the way of a name. Throws std::runtime_error if there is no such way.
Way way_of(const std::string& name);
/// Returns "sends, auto, …".
std::vector<std::string> way_names();

inline std::uint64_t tag_of(TileIndex tile) { return static_cast<std::uint64_t>(Layout::place(tile)); }
/// Returns the priority of a tile's messages: higher for tiles that are needed sooner.
inline int priority_of(TileIndex tile) { return -(tile.row + tile.column); }

}  // namespace canele::cholesky
