// SPDX-License-Identifier: BSD-3-Clause
//
// The queues of places. The tree is constant after construction.
//
// A unit that the topology does not know (hwloc failed, or the unit came later) belongs to the whole machine only.
#include "ltask/places.hpp"

#include <algorithm>
#include <cassert>

namespace canele::ltask {

Places::Places(const Topology& topology) {
  std::vector<Topology::Part> parts = topology.parts();
  if (parts.empty()) parts.push_back({Topology::Kind::machine, 0, -1, {}});
  count_ = parts.size();
  nodes_ = std::make_unique<Node[]>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Node& node = nodes_[i];
    node.kind = parts[i].kind;
    node.index = parts[i].index;
    assert(parts[i].within < static_cast<int>(i));
    if (parts[i].within >= 0) node.around = &nodes_[static_cast<std::size_t>(parts[i].within)];
    for (const int unit : parts[i].units) {
      const auto at = static_cast<std::size_t>(unit);
      if (innermost_.size() <= at) innermost_.resize(at + 1, &nodes_[0]);
      innermost_[at] = &node;  // each part comes after those around it
    }
  }
}

std::optional<int> Places::find(Topology::Kind kind, int index) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (nodes_[i].kind == kind && nodes_[i].index == index) return static_cast<int>(i);
  }
  return std::nullopt;
}

TaskQueue& Places::queue(int place) noexcept {
  assert(place >= 0 && static_cast<std::size_t>(place) < count_);
  return nodes_[static_cast<std::size_t>(place)].queue;
}

Places::Node* Places::node_around(int unit) const noexcept {
  const bool known = unit >= 0 && static_cast<std::size_t>(unit) < innermost_.size();
  return known ? innermost_[static_cast<std::size_t>(unit)] : &nodes_[0];
}

int Places::run(int unit, int limit) noexcept {
  int done = 0;
  for (Node* node = node_around(unit); node != nullptr && done < limit; node = node->around) {
    if (node->queue.has_work()) done += node->queue.run(limit - done);
  }
  return done;
}

bool Places::has_work(int unit) const noexcept {
  for (const Node* node = node_around(unit); node != nullptr; node = node->around) {
    if (node->queue.has_work()) return true;
  }
  return false;
}

}  // namespace canele::ltask
