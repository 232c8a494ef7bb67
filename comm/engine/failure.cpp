// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a peer: every request that needs it completes with an error; everything else goes on.
//
// Called under the engine's lock.
//
// Memory that is still in use is not released here. Requests whose data is being copied stay with their RmaCopy.
// Packets and transfers stay with the drivers that have them. Only the driver through which the peer failed no longer
// uses any of this memory. The other drivers give it back piece by piece.
#include <algorithm>
#include <utility>

#include "comm/engine/connect.hpp"
#include "comm/engine/peer_watch.hpp"
#include "comm/link/queue.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/one_sided_reply.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {
namespace {

void drop_item(Engine& engine, const Peer& peer, strategies::Item& item) CANELE_UNDER_LOCK {
  item.queued = false;
  if (item.kind == strategies::Kind::control) {
    engine.controls.release(static_cast<Control&>(item));
    return;
  }
  Request& request = request_of(item);
  if (item.kind == strategies::Kind::access) {
    const bool answers = request.role == Request::InternalRole::one_sided_reply;
    return answers ? one_sided::drop_reply(engine, request)
                   : one_sided::drop(engine, *engine.peers[request.rank], request);
  }
  if (request.handle != Handle::none && engine.sends.find(request.handle) == &request)
    engine.sends.remove(request.handle);
  engine.finish(request, peer.error);
}

/// Returns whether the packet of this rail is with its driver, or on its way there.
bool is_with_driver(const Rail& rail, DriverInstance* by) {
  return rail.transmit == Transmit::staged || (rail.transmit == Transmit::sending && rail.instance != by);
}

void drop_backlog(Engine& engine, Peer& peer, DriverInstance* by) CANELE_UNDER_LOCK {
  for (const auto& rail : peer.rails) {
    if (rail->packet == nullptr || !rail->packet->bulk || rail->packet->plan.count == 0) continue;
    if (!is_with_driver(*rail, by)) {  // the backlog has the item, too, or drop_named() finds its send
      rail->packet->plan.count = 0;
    } else {
      link::dequeue_bulk(peer, request_of(*rail->packet->plan.items[0]));
    }
  }
  while (strategies::Item* item = peer.backlog->any()) {
    peer.backlog->remove(*item);
    drop_item(engine, peer, *item);
  }
  peer.queued_bytes = 0;
}

bool is_sent_from(const Peer& peer, const Request& request, DriverInstance* by) {
  return std::any_of(peer.rails.begin(), peer.rails.end(),
                     [&](const auto& rail) { return is_with_driver(*rail, by) && rail->packet->holds(request); });
}

bool has_destination(const Peer& peer, Handle transfer_id) {
  return peer.rail_group != nullptr &&
         std::any_of(peer.rail_group->destinations.begin(), peer.rail_group->destinations.end(),
                     [&](const OpenDestination& one) { return one.transfer_id == transfer_id; });
}

void drop_named(Engine& engine, const Peer& peer, DriverInstance* by) CANELE_UNDER_LOCK {
  engine.sends.each([&](Request& request) CANELE_UNDER_LOCK {
    if (request.rank != peer.rank || request.copying || is_sent_from(peer, request, by)) return;
    CANELE_COVER(named_send_ended);
    engine.sends.remove(request.handle);
    async_get::deregister(peer, request);
    engine.finish(request, peer.error);
  });
  engine.transfers.each([&](Request& request) CANELE_UNDER_LOCK {
    if (request.receive.peer != &peer || request.copying || request.receive.node.queued) return;
    if (has_destination(peer, request.handle)) return;
    CANELE_COVER(transfer_ended);
    engine.transfers.remove(request.handle);
    rendezvous::lost_source(engine, request, peer);
  });
}

}  // namespace

void Engine::fail_peer(Peer& peer, int error, bool lost, std::string_view reason, DriverInstance* by) {
  if (peer.disconnected()) return;
  peers::change_state(*this, peer, lost ? Peer::State::failed : Peer::State::left);
  peer.error = error;
  peer.reason = reason;
  trace(Event::peer_failed, peer.rank);
  for (const auto& rail : peer.rails) {
    if (rail->connection != Connection::failed) peers::rail_down(*this, *rail, Connection::disconnected);
  }
  if (lost) {
    counters.add(Counter::peers_failed);
    log(LogLevel::warning, "rank " + std::to_string(peer.rank) + " is lost: " + std::string(reason));
  }
  credit_receiver::on_disconnected(*this, peer);
  credit_sender::drop(*this, peer);
  drop_backlog(*this, peer, by);
  for (const auto& rail : peer.rails) {
    if (!is_with_driver(*rail, by)) peers::drop_packet(*this, *rail);
  }
  if (peer.rail_group != nullptr) {
    peer.rail_group->drop();
    std::erase_if(peer.rail_group->destinations, [&](const OpenDestination& one) { return one.instance == by; });
  }
  drop_named(*this, peer, by);
  if (by != nullptr) async_get::drop(*this, peer, *by);
  one_sided::on_disconnected(*this, peer);
  multicast::on_disconnected(*this, peer);
  // Once all ranks finalize, each rank cancels what is still posted, in whatever order the ranks leave.
  const bool all_leave = !lost && stage != Stage::running;
  receive_path::end_posted(*this, peer.rank, all_leave ? CANELE_ECANCELED : peer.error);
  tell_of_ends(*this);
}

namespace peers {

void drop_packet(Engine& engine, Rail& rail) {
  rail.unacked.reset();
  if (rail.packet == nullptr) return;
  const std::unique_ptr<Packet> packet = std::move(rail.packet);  // so that the rail holds no request any more
  for (const DeferredRegistration& late : packet->late) {
    if (late.handle != 0) rail.instance->deregistrations.push_back(late.handle);
  }
  for (int i = 0; i < packet->plan.count; ++i) {
    strategies::Item& item = *packet->plan.items[i];
    const bool held = packet->bulk && rail.peer->holds(request_of(item));
    if (!held) drop_item(engine, *rail.peer, item);  // else the last rail that gives it back ends the send
  }
  transition(rail, Transmit::idle);
}

void given_back(Engine& engine, Rail& rail) {
  Peer& peer = *rail.peer;
  assert(peer.disconnected());
  if (!rail.in_flush()) drop_packet(engine, rail);
  async_get::drop(engine, peer, *rail.instance);
  if (peer.rail_group == nullptr) return;
  auto& destinations = peer.rail_group->destinations;
  for (std::size_t i = destinations.size(); i-- > 0;) {
    if (destinations[i].instance == rail.instance) rendezvous::destination_closed(engine, peer, i);
  }
}

void launcher_failed(Engine& engine, int rank) {
  Peer& peer = engine.peer(rank);
  if (peer.disconnected()) return;
  if (peer.state != Peer::State::up) {
    CANELE_COVER(death_before_connection);
    engine.fail_peer(peer, CANELE_EPEER, true, "the launcher says that it died");
    return;
  }
  // A connected peer has a driver that may still be writing into local memory, and what has arrived already still
  // counts.
  for (const auto& rail : peer.rails) report_failure(*rail);
}

void report_failure(Rail& rail) {
  if (rail.connection == Connection::failed || rail.failure_reported ||
      rail.instance->driver->capabilities().detects_failure)
    return;
  CANELE_COVER(failure_left_to_the_driver);
  rail.failure_reported = true;
  rail.instance->push_failed(rail);
  rail.instance->turns.store(0, std::memory_order_relaxed);  // due at once: see due() in progress.cpp
}

}  // namespace peers
}  // namespace canele::comm
