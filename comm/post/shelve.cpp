// SPDX-License-Identifier: BSD-3-Clause
//
// Copies the data of a multicast to memory that several destinations read.
#include "comm/post/shelve.hpp"

#include <algorithm>

#include "comm/state/payload.hpp"

namespace canele::comm::multicast {
namespace {

/// Counts the destinations that are reached by that driver.
std::size_t reached_by(const Engine& engine, const Multicast& whole, const DriverSlot& slot) {
  return static_cast<std::size_t>(std::count_if(whole.ranks.begin(), whole.ranks.end(), [&](int rank) {
    const Peer* peer = engine.peers[rank];
    return peer != nullptr && peer->state == Peer::State::up && peer->rail->slot == &slot && peer->bundle == nullptr;
  }));
}

}  // namespace

void shelve(Engine& engine, Multicast& whole, const canele_data_t& data) {
  constexpr std::size_t several = 2;
  constexpr int most_pieces = 64;
  if (whole.ranks.size() < several || data.length <= Rail::longest_at_once) return;
  const auto found = std::find_if(engine.slots.begin(), engine.slots.end(), [&](const auto& slot) {
    const drivers::Capabilities& can = slot->driver->capabilities();
    return can.get && can.shelf >= data.length;
  });
  if (found == engine.slots.end() || !engine.try_lock()) return;
  const std::size_t reached = reached_by(engine, whole, **found);
  engine.unlock();
  if (reached < several) return;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(data, 0, data.length, pieces, most_pieces, &covered);
  if (covered != data.length) return;
  using drivers::Access, drivers::everybody, drivers::Status;
  const Status status = (*found)->driver->expose(everybody, Access::get, pieces, count, &whole.shelved);
  if (status == Status::ok) whole.shelf = found->get();
}

}  // namespace canele::comm::multicast
