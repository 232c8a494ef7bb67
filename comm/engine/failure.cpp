// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a peer: every request that needs it completes with an error; everything else goes on.
//
// Called under the engine's lock.
//
// Memory that is still in use is not released here. Requests whose data is being copied stay with their Pull. Packets
// and transfers stay with the drivers that have them. Only the driver through which the peer failed no longer uses any
// of this memory. The other drivers give it back piece by piece.
#include <algorithm>
#include <utility>

#include "comm/engine/connect.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/rendezvous.hpp"
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

/// Returns whether the packet of this rail is with its driver, or on its way there.
bool is_lent(const Rail& rail, DriverSlot* by) {
  return rail.packet != nullptr && (rail.in_flush || (rail.state == Rail::State::sending && rail.slot != by));
}

void drop_backlog(Engine& engine, Peer& peer, DriverSlot* by) {
  for (const auto& rail : peer.rails) {
    if (rail->packet == nullptr || !rail->packet->bulk || rail->packet->plan.count == 0) continue;
    strategies::Item& item = *rail->packet->plan.items[0];  // it is also in the backlog
    if (!is_lent(*rail, by)) {
      rail->packet->plan.count = 0;
    } else if (std::exchange(item.queued, false)) {
      peer.backlog->remove(item);
    }
  }
  while (strategies::Item* item = peer.backlog->any()) {
    peer.backlog->remove(*item);
    drop_item(engine, peer, *item);
  }
  peer.queued_bytes = 0;
}

bool is_sent_from(const Peer& peer, const Request& request, DriverSlot* by) {
  return std::any_of(peer.rails.begin(), peer.rails.end(), [&](const auto& rail) {
    return is_lent(*rail, by) && rail->packet->bulk && rail->packet->plan.count == 1 &&
           rail->packet->plan.items[0] == &request.item;
  });
}

bool is_landing(const Peer& peer, std::uint64_t key) {
  return peer.bundle != nullptr && std::any_of(peer.bundle->landings.begin(), peer.bundle->landings.end(),
                                               [&](const OpenLanding& one) { return one.key == key; });
}

void drop_named(Engine& engine, const Peer& peer, DriverSlot* by) {
  engine.sends.each([&](Request& request) {
    if (request.rank != peer.rank || request.copying || is_sent_from(peer, request, by)) return;
    CANELE_MARK(named_send_ended);
    engine.sends.remove(request.handle);
    fetch::withdraw(peer, request);
    engine.finish(request, peer.error);
  });
  engine.transfers.each([&](Request& request) {
    if (request.receive.peer != &peer || request.copying || request.receive.node.queued) return;
    if (is_landing(peer, request.handle)) return;
    CANELE_MARK(transfer_ended);
    engine.transfers.remove(request.handle);
    rendezvous::lost_source(engine, request, peer);
  });
}

}  // namespace

void Engine::fail_peer(Peer& peer, int error, bool lost, std::string_view reason, DriverSlot* by) {
  if (peer.gone()) return;
  peer.state = lost ? Peer::State::failed : Peer::State::left;
  peer.error = error;
  peer.reason = reason;
  trace(Event::peer_failed, peer.rank);
  for (const auto& rail : peer.rails) peers::rail_down(*this, *rail);
  if (lost) {
    counters.add(Counter::peers_failed);
    log(LogLevel::warning, "rank " + std::to_string(peer.rank) + " is lost: " + std::string(reason));
  }
  flow_in::gone(*this, peer);
  flow_out::drop(*this, peer);
  drop_backlog(*this, peer, by);
  for (const auto& rail : peer.rails) {
    if (!is_lent(*rail, by)) peers::drop_packet(*this, *rail);
  }
  if (peer.bundle != nullptr) {
    peer.bundle->drop();
    std::erase_if(peer.bundle->landings, [&](const OpenLanding& one) { return one.slot == by; });
  }
  drop_named(*this, peer, by);
  if (by != nullptr) fetch::drop(*this, peer, *by);
  multicast::gone(*this, peer);
  // Once all ranks finalize, each rank cancels what is still posted, in whatever order the ranks leave.
  const bool all_leave = !lost && stage != Stage::running;
  receive_path::end_posted(*this, peer.rank, all_leave ? CANELE_ECANCELED : peer.error);
}

namespace peers {

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

void given_back(Engine& engine, Rail& rail) {
  Peer& peer = *rail.peer;
  assert(peer.gone());
  if (!rail.in_flush) drop_packet(engine, rail);
  fetch::drop(engine, peer, *rail.slot);
  if (peer.bundle == nullptr) return;
  auto& landings = peer.bundle->landings;
  for (std::size_t i = landings.size(); i-- > 0;) {
    if (landings[i].slot == rail.slot) rendezvous::landing_closed(engine, peer, i);
  }
}

void launcher_failed(Engine& engine, int rank) {
  Peer& peer = engine.peer(rank);
  if (peer.gone()) return;
  if (peer.state != Peer::State::up) {
    CANELE_MARK(death_before_connection);
    engine.fail_peer(peer, CANELE_EPEER, true, "the launcher says that it died");
    return;
  }
  // A connected peer has a driver that may still be writing into local memory, and what has arrived already still
  // counts.
  for (const auto& rail : peer.rails) tell_of_death(*rail);
}

void tell_of_death(Rail& rail) {
  if (rail.dead || rail.told_of_death || rail.slot->driver->capabilities().detects_failure) return;
  CANELE_MARK(death_left_to_the_driver);
  rail.told_of_death = true;
  rail.slot->push_death(rail);
  rail.slot->turns.store(0, std::memory_order_relaxed);  // due at once: see due() in progress.cpp
}

}  // namespace peers
}  // namespace canele::comm
