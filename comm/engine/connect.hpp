// SPDX-License-Identifier: BSD-3-Clause
//
// Peers: how a rank becomes reachable, and what happens when it no longer is.
//
// Called by the thread that holds the engine's lock. Nothing here waits.
//
// A peer is first resolved: its address is requested from the launcher. Then the drivers are tried in order. Meanwhile
// the sends to this peer stay in its backlog.
//
//   first contact ─▶ resolving ─address─▶ connecting (driver 1, 2, …) ─connected()─▶ up ─▶ left | failed
//                        └─ the peer connects first: connected() ─────────────────▶ up
#pragma once

#include <cassert>
#include <string>
#include <string_view>

#include "comm/engine/engine.hpp"

namespace canele::comm::peers {

/// Returns what every rank publishes: wire version, library version, the address of each of its drivers, and whether it
/// uses checksums.
Blob make_address(const Engine& engine);

/// Requests the address of a new peer from the launcher.
void resolve(Engine& engine, Peer& peer) CANELE_UNDER_LOCK;
/// Tries the drivers of the next group.
void connect(Engine& engine, Peer& peer) CANELE_UNDER_LOCK;
/// Makes a peer connected, or disconnected.
inline void change_state(Engine& engine, Peer& peer, Peer::State to) CANELE_UNDER_LOCK {
  assert(to >= Peer::State::up);
  if (peer.state < Peer::State::up) engine.driver_set.connecting.fetch_sub(1, std::memory_order_relaxed);
  peer.state = to;
}
Rail& add_rail(Peer& peer, DriverInstance* instance);
/// Marks the rail as no longer usable. Returns false if it never was.
bool rail_down(Engine& engine, Rail& rail, Connection to);
/// Handles the failure of one rail, before or after it was up. Other rails take over, or other drivers are tried.
void rail_failed(Engine& engine, Rail& rail) CANELE_UNDER_LOCK;
/// Tells the peer that this rank leaves.
void send_goodbye(Engine& engine, Peer& peer) CANELE_UNDER_LOCK;
/// Handles a connection that a driver has established. Returns nullptr, or the rail by which a peer must be told that
/// this rank has given it up.
Rail* connected(Engine& engine, DriverInstance& instance, int rank) CANELE_UNDER_LOCK;
void driver_failed(Engine& engine, DriverInstance& instance, int rank, bool lost,
                   std::string_view reason) CANELE_UNDER_LOCK;
/// Handles the launcher's report that a rank has died. It matters only where no driver would notice.
void launcher_failed(Engine& engine, int rank) CANELE_UNDER_LOCK;
/// Tells the driver of one rail that its peer has died, unless the driver detects that itself. The driver answers with
/// failed().
void report_failure(Rail& rail);
/// Handles that the driver of this rail no longer uses any memory of this rank. The peer had failed before, for another
/// reason.
void given_back(Engine& engine, Rail& rail) CANELE_UNDER_LOCK;
/// Drops a packet that a driver gave back after its peer had failed.
void drop_packet(Engine& engine, Rail& rail) CANELE_UNDER_LOCK;

}  // namespace canele::comm::peers
