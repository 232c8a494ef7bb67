// SPDX-License-Identifier: BSD-3-Clause
//
// The send path: from a posted send to a driver. Read send.cpp (what becomes of a message) and link/transmit.cpp
// (what becomes of a packet) top-down.
//
// Any thread may call these functions, under the engine's lock.
//
// Nothing is decided when the user calls. A message waits in the backlog until a rail can take a packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/link/queue.hpp"
#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::send_path {

/// Does steps 1 to 3: a posted send joins the backlog of its peer.
void on_send_posted(Context& context, Request& request);
/// Does the first part of on_send_posted(). Returns false if the send has ended, or is blocked.
bool admit(Context& context, Request& request);
/// Return the longest message, in bytes, that goes eagerly to the peer, or by the driver.
std::size_t eager_limit(const Context& context, const Peer& peer);
std::size_t eager_limit(const Context& context, const DriverInstance& instance);

/// Computes which messages may take the fast path to the rail.
void update_fast_limits(const Context& context, Rail& rail);

/// Does the rest of on_send_posted(), once the envelope may leave.
void join_backlog(Context& context, Peer& peer, Request& request);

/// Counts a message as sent, by the protocol that it takes.
inline void count(Context& context, Peer& peer, std::size_t length, Counter protocol) {
  context.counters.add(protocol);
  peer.counters.add(Counter::messages_sent);
  peer.counters.add(Counter::bytes_sent, length);
}
void count_message(Context& context, Peer& peer, const Request& request);

/// Does step 5: writes the chunk of one planned item at `out`. `staged`: the packet, if its driver is handed pieces
/// later. Large eager payloads are then left out of the chunk, and follow as pieces.
Written write_item(Context& context, Peer& peer, strategies::Item& item, std::byte* out, Packet* staged);

/// Does step 6, for an item whose bytes no longer need the user's memory.
void item_sent(Context& context, strategies::Item& item);

/// Handles that `bytes` bulk bytes have left.
void bulk_sent(Context& context, Peer& peer, Request& request, std::size_t bytes);

/// Makes sure that the peer learns of the session before it gets what is queued next.
void announce(Context& context, Peer& peer, const Session& session);

/// Returns what a fin or an ack says of a send: CANELE_OK, CANELE_ENOMEM, CANELE_ECANCELED, else CANELE_EPEER.
int decode_outcome(std::uint32_t word);

void reprioritize(Context& context, ReprioritizeOp& op);

}  // namespace canele::comm::send_path
