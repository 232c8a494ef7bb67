// SPDX-License-Identifier: BSD-3-Clause
//
// The send path: from a posted send to a driver, in six steps. docs/walks.md lists their functions in the order
// in which they run. send.cpp, write_item.cpp and item_sent.cpp have the parts of a message, link/transmit.cpp has
// those of a packet.
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
void on_send_posted(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Does steps 1 and 2. Returns false if the send has ended, or is blocked.
bool admit(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Return the longest message, in bytes, that goes eagerly to the peer, or by the driver.
std::size_t eager_limit(const Context& context, const Peer& peer);
std::size_t eager_limit(const Context& context, const DriverInstance& instance);
/// Returns the longest message, in bytes, that goes eagerly to any peer.
std::size_t eager_limit(const Context& context);
/// Returns whether a send of `length` bytes would leave as soon as the driver takes it: there is credit for it, and
/// little is queued before it. A peer that was not contacted yet has room. So has one that has failed: the send ends.
bool has_room(const Context& context, int destination, std::size_t length) CANELE_UNDER_LOCK;

/// Computes which messages may take the fast path to the rail.
void update_fast_limits(const Context& context, Rail& rail);

/// Does step 5: writes the chunk of one planned item at `out`. `staged`: the packet, if its driver is handed pieces
/// later. Large eager payloads are then left out of the chunk, and follow as pieces.
Written write_item(Context& context, Peer& peer, strategies::Item& item, std::byte* out,
                   Packet* staged) CANELE_UNDER_LOCK;

/// Does step 6, for an item whose bytes no longer need the user's memory.
void item_sent(Context& context, strategies::Item& item) CANELE_UNDER_LOCK;

/// Handles that `bytes` bulk bytes have left.
void bulk_sent(Context& context, Peer& peer, Request& request, std::size_t bytes) CANELE_UNDER_LOCK;

/// Makes sure that the peer learns of the session before it gets what is queued next.
void announce(Context& context, Peer& peer, const Session& session) CANELE_UNDER_LOCK;

/// Returns what a fin or an ack says of a send: CANELE_OK, CANELE_ENOMEM, CANELE_ECANCELED, else CANELE_EPEER.
int decode_outcome(std::uint32_t word);

void reprioritize(Context& context, ReprioritizeOp& op) CANELE_UNDER_LOCK;

}  // namespace canele::comm::send_path
