// SPDX-License-Identifier: BSD-3-Clause
//
// Peers: how a rank becomes reachable, and what happens when it no longer is.
//
// Who: the engine's lock holder.
// Threads: under the engine's lock.
// Surprise: nothing here waits. A peer is resolved (its address asked for), then drivers are tried in order; its
//     sends stay in the backlog meanwhile.
//
//   first contact ─▶ resolving ─address─▶ connecting (driver 1, 2, …) ─connected()─▶ up ─▶ left | failed
//                        └─ the peer connects first: connected() ─────────────────▶ up
#pragma once

#include <string>
#include <string_view>

#include "comm/core/engine.hpp"

namespace canele::comm::peers {

/// What every rank publishes: wire version, library version, incarnation, and the address of each of its drivers.
Blob make_address(const Engine& engine);

/// First contact: asks the launcher for the peer's address.
void resolve(Engine& engine, Peer& peer);
/// Tries the drivers of the next group.
void connect(Engine& engine, Peer& peer);
Rail& add_rail(Peer& peer, DriverSlot* slot);
/// Which messages may take the short cut to the rail.
void set_inline_limit(Engine& engine, Rail& rail);
/// The rail carries no more. False: it never did.
bool rail_down(Engine& engine, Rail& rail);
/// One rail has failed, before or after it was up: others take over, or other drivers are tried.
void rail_failed(Engine& engine, Rail& rail);
/// The peer hears that we leave.
void say_bye(Engine& engine, Peer& peer);
/// Not nullptr: that peer is given up here, and must hear of it by this rail.
Rail* connected(Engine& engine, DriverSlot& slot, int rank);
void driver_failed(Engine& engine, DriverSlot& slot, int rank, bool lost, std::string_view reason);
/// The launcher says that a rank has died. Matters only where no driver would notice.
void launcher_failed(Engine& engine, int rank);
/// The same of one rail: a driver that would not notice is told, and answers with failed().
void tell_of_death(Rail& rail);
/// The driver of this rail has no memory of ours any more; its peer had failed before, for another reason.
void given_back(Engine& engine, Rail& rail);
/// A packet that a driver gave back after its peer had failed.
void drop_packet(Engine& engine, Rail& rail);

}  // namespace canele::comm::peers
