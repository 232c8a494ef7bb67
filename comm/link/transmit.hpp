// SPDX-License-Identifier: BSD-3-Clause
//
// From the backlog of a peer to its drivers: steps 4 and 5 of a send. Read transmit.cpp top-down.
//
// Any thread may call these functions, under the engine's lock.
#pragma once

#include <cstdint>

#include "comm/state/context.hpp"

namespace canele::comm::link {

/// Does step 4: gives packets to the peer's rail as long as the rail takes them.
void flush(Context& context, Peer& peer) CANELE_UNDER_LOCK;

/// A range of a message, in bytes.
struct BulkSlice {
  std::uint64_t offset, length;
};
/// Sends a slice of a granted transfer, or its front, by a rail that is idle. Returns false if the rail is full.
bool send_bulk(Context& context, Rail& rail, Request& request, const BulkSlice& slice) CANELE_UNDER_LOCK;

/// Handles the answer of a system-call driver for the packet of `rail` (rail.result).
void driver_returned(Context& context, Rail& rail) CANELE_UNDER_LOCK;
/// Handles that the memory of the packet is free again.
void packet_done(Context& context, Rail& rail, drivers::Status status) CANELE_UNDER_LOCK;

/// Counts a packet as sent: envelopes, packets, aggregation.
void count_packet(Context& context, Peer& peer, const strategies::Plan& plan) CANELE_UNDER_LOCK;

}  // namespace canele::comm::link
