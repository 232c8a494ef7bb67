// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier. See build.hpp (who, threads).
// Surprise: each round waits for the receives of all rounds before it, not only of the last: they come from different
//     ranks, and the later message may overtake the earlier one.
//
//   round 0: to rank + 1    round 1: to rank + 2    round k: to rank + 2^k    after ceil(log2 n) all have heard of all
//
// Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988 (dissemination).
#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {

Schedule barrier_dissemination(const Call& call) {
  Builder builder;
  StepId heard = no_step;
  std::uint32_t round = 0;
  for (std::int64_t away = 1; away < call.size; away *= 2, ++round) {
    const auto to = static_cast<int>((call.rank + away) % call.size);
    const auto from = static_cast<int>((call.rank - away + call.size) % call.size);
    const StepId receive = builder.receive(from, slot_of(0, round), {});
    builder.send(to, slot_of(0, round), {}, {heard});
    const StepId both[] = {heard, receive};
    heard = heard == no_step ? receive : builder.join(both);
  }
  return std::move(builder).build();
}

/// Each tells each. Where ranks share a core, whoever has its turn last in a barrier is through it, and has come to the
/// next one, before it yields: with two ranks a core that is one switch a barrier, where a root needs two.
Schedule barrier_flat(const Call& call) {
  Builder builder;
  for (int away = 1; away < call.size; ++away) {
    builder.receive((call.rank + call.size - away) % call.size, slot_of(0, 0), {});
    builder.send((call.rank + away) % call.size, slot_of(0, 0), {});
  }
  return std::move(builder).build();
}

/// All have come, tells the root once it has heard it, along the tree; then all are told.
Schedule barrier_two_phases(const Call& call, const Choice& choice) {
  const Tree tree = tree_of(call, choice, 0);
  Builder builder;
  std::vector<StepId> heard;
  for (const Edge& child : tree.children) heard.push_back(builder.receive(child.peer, slot_of(0, 0), {}));
  StepId all = heard.empty() ? no_step : builder.join(heard);
  if (!tree.is_root()) {
    builder.send(tree.parent.peer, slot_of(0, 0), {}, {all});
    all = builder.receive(tree.parent.peer, slot_of(1, 0), {});
  }
  for (const Edge& child : tree.children) builder.send(child.peer, slot_of(1, 0), {}, {all});
  return std::move(builder).build();
}

}  // namespace canele::comm::collectives
