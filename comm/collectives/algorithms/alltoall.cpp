// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all. In place, no message is received directly into its final position: the block there may not have been sent
// yet. The message waits in scratch memory, so that all receives can still be posted at the start.
//
//    flat     all receives are posted; of the sends, to rank + 1, rank + 2, …, at most `inflight_limit` are in flight
//    Bruck    a block at distance d travels by the bits of d: in round k all blocks with bit k of d advance by 2^k
//
// Flat with a limit: Reynier, A study on progression of MPI communications using dedicated resources, 2022, 5.2.2.
// Bruck, Ho, Kipnis, Upfal, Weathersby, 1997.
#include <cassert>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/layout.hpp"

namespace canele::comm::collectives {
namespace {

Range received_block(const Call& call, int position) {
  return {Space::output, call.output.offset_of(position), call.output.length_of(position)};
}

Range sent_block(const Call& call, int position) {
  if (call.in_place) return received_block(call, position);
  return {Space::input, call.input.offset_of(position), call.input.length_of(position)};
}

}  // namespace

void alltoall_flat(Plan& plan, const Choice& choice) {
  const Call& call = plan.call();
  plan.inflight_limit(choice.inflight_limit);
  std::vector<Range> waiting;  // indexed by the distance from the sender
  for (int away = 1; away < call.size; ++away) {
    const int from = (call.rank + call.size - away) % call.size;
    const Range place = received_block(call, from);
    waiting.push_back(call.in_place ? plan.scratch(place.length) : place);
    plan.receive(from, slot_of(0, 0), waiting.back());
  }
  for (int away = 1; away < call.size; ++away) {
    const int to = (call.rank + away) % call.size;
    plan.send(to, slot_of(0, 0), sent_block(call, to));
  }
  plan.copy(sent_block(call, call.rank), received_block(call, call.rank));
  for (int away = 1; call.in_place && away < call.size; ++away) {
    const int from = (call.rank + call.size - away) % call.size;
    plan.copy(waiting[static_cast<std::size_t>(away) - 1], received_block(call, from));
  }
}

void alltoall_bruck(Plan& plan) {
  const Call& call = plan.call();
  const auto n = static_cast<std::uint64_t>(call.size), rank = static_cast<std::uint64_t>(call.rank);
  const std::uint64_t bytes = call.output.length;
  assert(!call.irregular && call.output.lengths == nullptr && "blocks travel in company");
  std::vector<Range> travelling;  // by total distance: where each block is now
  for (std::uint64_t away = 0; away < n; ++away) {
    travelling.push_back(sent_block(call, static_cast<int>((rank + away) % n)));
  }
  std::uint64_t round = 0;
  for (std::uint64_t bit = 1; bit < n; bit *= 2, ++round) {
    std::uint64_t count = 0;
    for (std::uint64_t away = bit; away < n; ++away) count += (away & bit) != 0 ? 1 : 0;
    const Range in = plan.scratch(count * bytes), out = plan.scratch(count * bytes);
    plan.receive(static_cast<int>((rank + n - bit) % n), slot_of(0, round), in);
    Copies pack(plan);
    std::uint64_t at = 0;
    for (std::uint64_t away = bit; away < n; ++away) {
      if ((away & bit) == 0) continue;
      pack.add(travelling[away], out.slice(at, bytes));
      travelling[away] = in.slice(at, bytes);
      at += bytes;
    }
    pack.finish();
    plan.send(static_cast<int>((rank + bit) % n), slot_of(0, round), out);
  }
  // A block at distance d comes from rank - d. In place, the copies wait for the sends from there.
  for (std::uint64_t away = 0; away < n; ++away) {
    plan.copy(travelling[away], received_block(call, static_cast<int>((rank + n - away) % n)));
  }
}

}  // namespace canele::comm::collectives
