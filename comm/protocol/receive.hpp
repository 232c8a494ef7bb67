// SPDX-License-Identifier: BSD-3-Clause
//
// The receive path: from a driver's packet to the user's memory. docs/walks.md lists its functions in the order
// in which they run.
//
// Any thread may call these functions, under the engine's lock.
//
// Every length in a packet is checked before use, and read once: the packet may be memory that the peer still writes.
#pragma once

#include <span>

#include "comm/state/context.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::receive_path {

/// Handle chunks. They return the verdict on the chunk.
/// A session chunk: the peer's index leads to our session of that label from then on.
Verdict on_session(Context& context, Peer& peer, const wire::Head& head,
                   std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_eager(Context& context, Peer& peer, const wire::Head& head,
                 std::span<const std::byte> payload) CANELE_UNDER_LOCK;
Verdict on_ack(Context& context, Peer& peer, const wire::Head& head) CANELE_UNDER_LOCK;

// ---- messages that have to be kept ----------------------------------------------------------------------------------

/// What is kept of a message from a peer.
struct MessageFields {
  std::uint64_t tag;
  std::uint8_t traits;
  Message::Origin origin;             ///< used if the traits ask for one
  std::span<const std::byte> stored;  ///< the bytes of the message that have come
  std::span<const std::byte> rkey = {};
};
/// Makes a message, which is in no table yet. Returns nullptr if there is no memory.
Message* make_message(Context& context, const Peer& peer, const MessageFields& fields) CANELE_UNDER_LOCK;
/// Keeps a message. The unbound receive that it has matched holds it, or it is filed if `node` is nullptr. Returns
/// false if there was no memory to file it; the message is gone then.
bool store_unexpected(Context& context, Session& session, PostedNode* node, Message& message) CANELE_UNDER_LOCK;
/// The envelope of a message that has to be kept.
struct Unexpected {
  std::uint64_t tag;
  std::uint64_t length;
  std::uint64_t charged;  ///< what it cost; 0: it is only a blocked envelope
  PostedNode* node;       ///< of the unbound receive that it has matched; nullptr: no receive waits for it
};
/// Answers for a message for which there is no memory. If no receive waits for it, it comes again. An unbound receive
/// is already out of the tables, so it ends, and the message is lost with it.
[[gnu::cold]] Verdict no_room(Context& context, Peer& peer, const Unexpected& message) CANELE_UNDER_LOCK;

// ---- receives -------------------------------------------------------------------------------------------------------

/// Takes a posted receive: it gets an unexpected message, or waits.
void accept(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Continues an unbound receive (canele_irecv_late) that has got its buffer.
void bind(Context& context, Request& request) CANELE_UNDER_LOCK;
void cancel(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Takes a posted receive without a message out of the tables. Its RTR is void from then on.
void take_out(Context& context, Request& request) CANELE_UNDER_LOCK;
/// Ends the posted receives that only `source` can serve. rank_any: ends all that are posted.
void end_posted(Context& context, int source, int error) CANELE_UNDER_LOCK;
void probe(Context& context, ProbeOp& op) CANELE_UNDER_LOCK;

/// Releases the memory of a message that is needed no longer. Its sender may send as much again.
void discard(Context& context, Message& message) CANELE_UNDER_LOCK;

/// Gives `request` the message that it has matched: copies it, or starts the rendezvous, or holds it for an
/// unbound receive.
void deliver_to(Context& context, Request& request, Message& message) CANELE_UNDER_LOCK;

/// Ends a receive that has met its message, but did not get all of it.
void fail_receive(Context& context, Request& request, int error) CANELE_UNDER_LOCK;

/// Ends a receive that has its data: counts, fault switch, status.
void complete_receive(Context& context, Request& request, Peer& peer, std::uint64_t delivered_bytes) CANELE_UNDER_LOCK;

}  // namespace canele::comm::receive_path
