// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations at their origin. one_sided_target.hpp has the other end, state/one_sided.hpp the picture.
//
//   on_posted ─▶ begin ─▶ backlog ─▶ write ─▶ on_written ─┬─▶ over (no acknowledgement is wanted)
//      │           ▲ │                                    └─▶ on_executed, on_got, on_result ─▶ over
//      └─▶ waiting ┘ └─▶ (large) Transfer ─▶ on_transferred ─────────▲
//          behind a large put, or for a window
//
// Any thread may call these functions, under the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/state/context.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {

/// Begins an operation of the program, or lets it wait for its turn.
void on_posted(Context& context, Request& request) CANELE_UNDER_LOCK;
/// The chunk no longer needs the program's memory.
void on_written(Context& context, Request& request) CANELE_UNDER_LOCK;

Verdict on_executed(Context& context, Peer& peer, const wire::Head& head) CANELE_UNDER_LOCK;
Verdict on_got(Context& context, Peer& peer, const wire::Head& head,
               std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_result(Context& context, Peer& peer, const wire::Head& head,
                  std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_access_failed(Context& context, Peer& peer, const wire::Head& head,
                         std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_notified(Context& context, Peer& peer, const wire::Head& head) CANELE_UNDER_LOCK;

/// The message with the data of a large operation has ended, well or not. Ends the transfer.
void on_transferred(Context& context, Transfer& transfer) CANELE_UNDER_LOCK;

/// Ends an operation whose packet was dropped, because the peer is disconnected.
void drop(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
/// Ends the operations to a peer that is disconnected, but for those that a driver still holds.
void on_disconnected(Context& context, Peer& peer) CANELE_UNDER_LOCK;

/// Forgets the errors that no flush of the lane has told.
void forget_errors(Context& context, std::uint16_t lane) CANELE_UNDER_LOCK;
/// Makes the target forget the key. No operation with it is pending.
void detach(Context& context, RemoteKey& key) CANELE_UNDER_LOCK;

/// Adds a chunk of `payload` bytes to the backlog. The chunks of a lane are a flow: they leave in order.
void enqueue_chunk(Context& context, Peer& peer, Request& request, std::size_t payload) CANELE_UNDER_LOCK;

}  // namespace canele::comm::one_sided
