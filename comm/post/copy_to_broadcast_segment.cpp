// SPDX-License-Identifier: BSD-3-Clause
//
// Copies the data of a multicast to memory that several destinations read.
#include "comm/post/copy_to_broadcast_segment.hpp"

#include <algorithm>

#include "comm/state/payload.hpp"

namespace canele::comm::multicast {
namespace {

/// Counts the destinations that are reached by that driver.
std::size_t reached_by(const Engine& engine, const Multicast& whole, const DriverInstance& instance) CANELE_UNDER_LOCK {
  return static_cast<std::size_t>(
      std::count_if(whole.ranks.begin(), whole.ranks.end(), [&](int rank) CANELE_UNDER_LOCK {
        const Peer* peer = engine.peers[rank];
        return peer != nullptr && peer->state == Peer::State::up && peer->rail->instance == &instance &&
               peer->rail_group == nullptr;
      }));
}

}  // namespace

void copy_to_broadcast_segment(Engine& engine, Multicast& whole, const canele_data_t& data) {
  constexpr std::size_t several = 2;
  constexpr int most_pieces = 64;
  if (whole.ranks.size() < several || data.length <= Rail::longest_fast) return;
  const auto found = std::find_if(engine.instances.begin(), engine.instances.end(), [&](const auto& instance) {
    const drivers::Capabilities& can = instance->driver->capabilities();
    return can.get && can.broadcast_segment >= data.length;
  });
  if (found == engine.instances.end() || !engine.try_lock()) return;
  const std::size_t reached = reached_by(engine, whole, **found);
  engine.unlock();
  if (reached < several) return;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(data, 0, data.length, pieces, most_pieces, &covered);
  if (covered != data.length) return;
  using drivers::RmaOp, drivers::all_peers, drivers::Status;
  const Status status = (*found)->driver->register_memory(all_peers, RmaOp::get, pieces, count, &whole.segment_key);
  if (status == Status::ok) whole.segment_driver = found->get();
}

}  // namespace canele::comm::multicast
