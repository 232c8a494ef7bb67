// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a peer: every request that needs it completes with an error; everything else goes on.
//
// Threads: under the engine's lock.
// Surprise: requests whose data is being copied are left to their Pull, and a packet that a driver's server may
//     hold is left until it comes back.
#include <algorithm>
#include <utility>

#include "comm/core/peers.hpp"
#include "comm/protocol/fetch.hpp"
#include "comm/protocol/receive_path.hpp"
#include "comm/protocol/send_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {
namespace {

void drop_item(Engine& engine, const Peer& peer, strategies::Item& item) {
  item.queued = false;
  if (item.kind == strategies::Kind::control) {
    engine.controls.release(static_cast<Control&>(item));
    return;
  }
  Request& request = request_of(item);
  if (request.handle != 0 && engine.sends.find(request.handle) == &request) engine.sends.remove(request.handle);
  engine.finish(request, peer.error);
}

/// The transfer that a slice in this rail's packet belongs to, or nullptr.
Request* slice_of(const Rail& rail) {
  const bool holds = rail.packet != nullptr && rail.packet->bulk && rail.packet->plan.count == 1;
  return holds ? &request_of(*rail.packet->plan.items[0]) : nullptr;
}

bool is_held(const Peer& peer, const Request& request) {
  return std::any_of(peer.rails.begin(), peer.rails.end(),
                     [&](const auto& rail) { return slice_of(*rail) == &request; });
}

void drop_backlog(Engine& engine, Peer& peer) {
  for (const auto& rail : peer.rails) {  // these end with their packets
    Request* const request = slice_of(*rail);
    if (request == nullptr || !std::exchange(request->item.queued, false)) continue;
    peer.backlog->remove(request->item);
  }
  while (strategies::Item* item = peer.backlog->any()) {
    peer.backlog->remove(*item);
    drop_item(engine, peer, *item);
  }
  peer.queued_bytes = 0;
}

void drop_named(Engine& engine, const Peer& peer) {
  engine.sends.each([&](Request& request) {
    if (request.rank != peer.rank || request.copying || is_held(peer, request)) return;
    CANELE_MARK(named_send_ended);
    engine.sends.remove(request.handle);
    fetch::withdraw(peer, request);
    engine.finish(request, peer.error);
  });
  fetch::drop(engine, peer);
  engine.transfers.each([&](Request& request) {
    if (request.receive.peer != &peer || request.copying || request.receive.node.queued) return;
    CANELE_MARK(transfer_ended);
    engine.transfers.remove(request.handle);
    engine.finish(request, peer.error);
  });
}

}  // namespace

void Engine::fail_peer(Peer& peer, int error, bool lost, std::string_view reason) {
  if (peer.gone()) return;
  peer.state = lost ? Peer::State::failed : Peer::State::left;
  peer.error = error;
  peer.reason = reason;
  for (const auto& rail : peer.rails) peers::rail_down(*this, *rail);
  if (lost) {
    counters.add(Counter::peers_failed);
    log(LogLevel::warning, "rank " + std::to_string(peer.rank) + " is lost: " + std::string(reason));
  }
  drop_backlog(*this, peer);
  for (const auto& rail : peer.rails) {
    if (!peers::with_driver(*rail)) peers::drop_packet(*this, *rail);
  }
  if (peer.bundle != nullptr) peer.bundle->drop();
  drop_named(*this, peer);
  receive_path::end_posted(*this, peer.rank, peer.error);
}

namespace peers {

bool with_driver(const Rail& rail) { return rail.in_flush || (rail.state == Rail::State::sending && !rail.dead); }

void drop_packet(Engine& engine, Rail& rail) {
  rail.kept.reset();
  if (rail.packet == nullptr) return;
  for (const LateExposure& late : rail.packet->late) {
    if (late.handle != 0) rail.slot->withdrawals.push_back(late.handle);
  }
  for (int i = 0; i < rail.packet->plan.count; ++i) drop_item(engine, *rail.peer, *rail.packet->plan.items[i]);
  rail.packet.reset();
  rail.state = Rail::State::idle;
}

void launcher_failed(Engine& engine, int rank) {
  Peer& peer = engine.peer(rank);
  if (peer.gone()) return;
  if (peer.state != Peer::State::up) {
    CANELE_MARK(death_before_connection);
    engine.fail_peer(peer, CANELE_EPEER, true, "the launcher says that it died");
    return;
  }
  // A connection has its driver: it may be writing into our memory, and what has come already still counts.
  for (const auto& rail : peer.rails) {
    if (rail->dead || rail->told_of_death) continue;
    if (rail->slot->driver->capabilities().detects_failure) continue;
    CANELE_MARK(death_left_to_the_driver);
    rail->told_of_death = true;
    rail->slot->push_death(*rail);
    rail->slot->turns.store(0, std::memory_order_relaxed);  // it is due: see due() in progress.cpp
  }
}

}  // namespace peers
}  // namespace canele::comm
