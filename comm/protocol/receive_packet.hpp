// SPDX-License-Identifier: BSD-3-Clause
//
// Receive, steps 1 and 2: a driver presents a packet, which is one eager message, or is parsed.
//
// Any thread may call it under the engine's lock; DriverInstance does.
//
// It is a header so that a driver's callback is one function, see receive_eager.hpp.
#pragma once

#include "comm/protocol/receive_eager.hpp"

namespace canele::comm::receive_path {

/// Takes a packet of several chunks, or of one chunk that is no short message. (Functions out of line get a head or a
/// message by value. By reference, it would have to be in memory for all others, too.)
Verdict other_packet(Context& context, Peer& peer, wire::Head first, Payload bytes) CANELE_UNDER_LOCK;

/// Does step 2, for a whole packet. Returns the verdict on the packet.
[[gnu::always_inline]] static inline Verdict receive_packet(Context& context, Peer& peer,
                                                            Payload bytes) CANELE_UNDER_LOCK {
  peer.counters.add(Counter::packets_received);
  wire::Head head;
  if (!wire::peek(bytes, head)) [[unlikely]]
    return Verdict::violation("a packet is shorter than the head of a chunk");
  if (!wire::is_one_eager(head, bytes.size())) return other_packet(context, peer, head, bytes);
  return deliver_eager(context, peer, head, bytes.subspan(sizeof head), Handle::none);
}

}  // namespace canele::comm::receive_path
