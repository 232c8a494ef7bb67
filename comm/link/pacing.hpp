// SPDX-License-Identifier: BSD-3-Clause
//
// Pacing of several rails to a peer: what each of them carries, how quick it is, and what the two ends tell each other
// about that.
//
// Any thread may call these functions, under the engine's lock. Read by link/sequencing.cpp, which feeds the rails.
//
//   sender    rail_probe ─▶          receiver    ─▶ rail_echo, by the same rail: latency
//             bulk data  ─▶                      ─▶ rail_report, by the same rail: bytes that have arrived
//
// A rail is named by the byte DriverInstance::driver_tag(), which is the same at both ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm::pacing {

/// What the strategy may be told of a peer's rails now.
struct View {
  std::span<const strategies::RailLoad> loads;  ///< in the order of Peer::rails; empty if fewer than two may share
  std::size_t asking = 0;                       ///< index of the rail that asks
  bool bulk_allowed = false;                    ///< this rail may take bulk data
  bool quick = true;                            ///< this rail may take other packets
};
/// Returns that view for a rail. The loads are valid until the next call.
View view_of(const Context& context, Peer& peer, const Rail& rail) CANELE_UNDER_LOCK;

/// Returns the chunk about this rail that is due, and takes it as sent.
std::optional<wire::Head> take_due(const Context& context, Rail& rail) CANELE_UNDER_LOCK;
/// Takes that back: the rail was full.
void put_back(Rail& rail, const wire::Head& chunk) CANELE_UNDER_LOCK;

/// Handles these chunks of the peer. They return the verdict on them.
Verdict on_probe(Context& context, Peer& peer, const wire::Head& chunk) CANELE_UNDER_LOCK;
Verdict on_echo(Context& context, Peer& peer, const wire::Head& chunk) CANELE_UNDER_LOCK;
Verdict on_report(Context& context, Peer& peer, const wire::Head& chunk) CANELE_UNDER_LOCK;

/// Notes that bulk data has arrived by the rail of a driver, or that the driver drops it. Does nothing if the peer has
/// one rail.
void arrived(Context& context, Peer& peer, const DriverInstance& instance, std::uint64_t bytes) CANELE_UNDER_LOCK;
/// Notes that a transfer has ended: what has arrived by each rail is reported.
void transfer_ended(Context& context, Peer& peer) CANELE_UNDER_LOCK;

}  // namespace canele::comm::pacing
