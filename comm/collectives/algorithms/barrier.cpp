// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier. Each round waits for the receives of all rounds before it, not only of the previous one. They come from
// different ranks, and the later message may overtake the earlier one.
//
//   round 0: to rank + 1    round k: to rank + 2^k    after ceil(log2 n) rounds, all have indirectly received from all
//
// Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988 (dissemination).
#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {

Schedule barrier_dissemination(const Call& call) {
  Builder builder;
  StepId received = no_step;
  std::uint32_t round = 0;
  for (std::int64_t away = 1; away < call.size; away *= 2, ++round) {
    const auto to = static_cast<int>((call.rank + away) % call.size);
    const auto from = static_cast<int>((call.rank - away + call.size) % call.size);
    const StepId receive = builder.receive(from, slot_of(0, round), {});
    builder.send(to, slot_of(0, round), {}, {received});
    const StepId both[] = {received, receive};
    received = received == no_step ? receive : builder.join(both);
  }
  return std::move(builder).build();
}

/// Each rank notifies each other rank. Where ranks share a core, the rank that has its turn last in a barrier completes
/// it, and reaches the next barrier, before it yields. With two ranks to a core, that is one switch for each barrier,
/// where a root needs two.
Schedule barrier_flat(const Call& call) {
  Builder builder;
  for (int away = 1; away < call.size; ++away) {
    builder.receive((call.rank + call.size - away) % call.size, slot_of(0, 0), {});
    builder.send((call.rank + away) % call.size, slot_of(0, 0), {});
  }
  return std::move(builder).build();
}

/// Each rank notifies its parent once it has received from its children; then the root's answer goes down the tree.
Schedule barrier_two_phases(const Call& call, const Choice& choice) {
  const Tree tree = tree_of(call, choice, 0);
  Builder builder;
  std::vector<StepId> received;
  for (const Edge& child : tree.children) received.push_back(builder.receive(child.peer, slot_of(0, 0), {}));
  StepId all = received.empty() ? no_step : builder.join(received);
  if (!tree.is_root()) {
    builder.send(tree.parent.peer, slot_of(0, 0), {}, {all});
    all = builder.receive(tree.parent.peer, slot_of(1, 0), {});
  }
  for (const Edge& child : tree.children) builder.send(child.peer, slot_of(1, 0), {}, {all});
  return std::move(builder).build();
}

}  // namespace canele::comm::collectives
