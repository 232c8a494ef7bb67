// SPDX-License-Identifier: BSD-3-Clause
//
// The task queues of the topology. The tree is constant after construction.
//
// A unit that the topology does not know (hwloc failed, or the unit came later) belongs to the whole machine only.
#include "ltask/topology_task_queues.hpp"

#include <algorithm>
#include <cassert>

namespace canele::ltask {

TopologyTaskQueues::TopologyTaskQueues(const Topology& topology) {
  std::vector<Topology::Object> objects = topology.objects();
  if (objects.empty()) objects.push_back({Topology::Kind::machine, 0, -1, {}});
  count_ = objects.size();
  nodes_ = std::make_unique<Node[]>(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Node& node = nodes_[i];
    node.kind = objects[i].kind;
    node.index = objects[i].index;
    assert(objects[i].within < static_cast<int>(i));
    if (objects[i].within >= 0) node.around = &nodes_[static_cast<std::size_t>(objects[i].within)];
    for (const int unit : objects[i].units) {
      const auto at = static_cast<std::size_t>(unit);
      if (innermost_.size() <= at) innermost_.resize(at + 1, &nodes_[0]);
      innermost_[at] = &node;  // each object comes after those around it
    }
  }
}

std::optional<int> TopologyTaskQueues::find(Topology::Kind kind, int index) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (nodes_[i].kind == kind && nodes_[i].index == index) return static_cast<int>(i);
  }
  return std::nullopt;
}

TaskQueue& TopologyTaskQueues::queue(int place) noexcept {
  assert(place >= 0 && static_cast<std::size_t>(place) < count_);
  return nodes_[static_cast<std::size_t>(place)].queue;
}

TopologyTaskQueues::Node* TopologyTaskQueues::node_around(int unit) const noexcept {
  const bool known = unit >= 0 && static_cast<std::size_t>(unit) < innermost_.size();
  return known ? innermost_[static_cast<std::size_t>(unit)] : &nodes_[0];
}

int TopologyTaskQueues::run(int unit, int limit) noexcept {
  int done = 0;
  for (Node* node = node_around(unit); node != nullptr && done < limit; node = node->around) {
    if (node->queue.has_work()) done += node->queue.run(limit - done);
  }
  return done;
}

bool TopologyTaskQueues::has_work(int unit) const noexcept {
  for (const Node* node = node_around(unit); node != nullptr; node = node->around) {
    if (node->queue.has_work()) return true;
  }
  return false;
}

}  // namespace canele::ltask
