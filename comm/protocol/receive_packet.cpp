// SPDX-License-Identifier: BSD-3-Clause
//
// Receive, step 2 for packets that are no short message: a long message, a numbered packet of several rails, or chunks.
#include "comm/protocol/receive_packet.hpp"

#include "comm/link/parse_chunks.hpp"
#include "comm/link/sequencing.hpp"
#include "comm/protocol/one_sided_target.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::receive_path {

[[gnu::noinline]] Verdict other_packet(Context& context, Peer& peer, wire::Head first, Payload bytes) {
  context.trace(Event::packet_received, peer.rank, nullptr, 0, bytes.size());
  if (first.type == wire::Type::put && first.size == bytes.size() - sizeof first && first.size != wire::long_size) {
    CANELE_COVER(one_sided_put_alone);
    return one_sided::on_put(context, peer, first, bytes.subspan(sizeof first));
  }
  if (const Payload payload = wire::one_long_eager(first, bytes); !payload.empty()) {
    CANELE_COVER(packet_is_one_long_eager);
    return deliver_eager(context, peer, first, payload, Handle::none);
  }
  if (first.type == wire::Type::sequenced && first.size == 0) {
    return sequencing::accept_sequenced(context, peer, first, bytes.subspan(sizeof first));
  }
  return link::parse_chunks(context, peer, bytes, &peer.chunks_done);
}

}  // namespace canele::comm::receive_path
