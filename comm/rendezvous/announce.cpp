// SPDX-License-Identifier: BSD-3-Clause
//
// The envelope of a large message: what the receiver needs to choose how the data comes.
#include "comm/rendezvous/announce.hpp"

#include <cstring>

#include "comm/protocol/credit_sender.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {

std::byte* write_rts(Context& context, Peer& peer, Request& request, wire::Head head, std::byte* out, Packet* staged,
                     const RtrTable::RemoteRtr* remote_rtr) {
  context.trace(Event::rts_sent, peer.rank, request.session, request.status_tag, request.data.length);
  if (request.handle == 0) request.handle = context.sends.add(request);
  const bool routed = request.role == Request::InternalRole::destination_send;
  const bool needs_fin = routed || (peer.rail_group != nullptr && peer.rail_group->sequenced);
  drivers::MemoryKey rkey;
  if (request.role == Request::InternalRole::in_segment) {
    rkey = context.segment_key_of(request);
  } else if (request.role == Request::InternalRole::buffered) {
    rkey = buffered::copy_of(request).rkey;
  } else if (!context.is_read_elsewhere(request)) {
    register_memory(peer, request, rkey);
  }
  const std::size_t late = staged != nullptr && !needs_fin ? async_get::room(*peer.rail, request) : 0;
  wire::Rts rts{};
  rts.handle = request.handle;
  rts.length = request.data.length;
  rts.header = request.header;
  rts.rkey = static_cast<std::uint16_t>(rkey.size + late);
  rts.rkey_driver = rkey.size != 0 ? peer.rail->instance->driver_tag() : 0;
  rts.synchronous = request.synchronous;
  rts.needs_fin = needs_fin;
  request.needs_fin = needs_fin;
  const bool is_plain = request.role == Request::InternalRole::none;
  if (remote_rtr != nullptr && is_plain && rtr::is_worthwhile(context, peer, request)) {
    ChunkClaims claims(peer.rail->lines.theirs[remote_rtr->line], remote_rtr->generation);
    if (claims.acquire()) {
      CANELE_COVER(rtr_acquired);
      rts.receive = remote_rtr->key;
      shared_copy::send(context, request, peer, claims, *remote_rtr);
    }
  }
  const std::size_t payload = sizeof rts + rts.header + rts.rkey;
  if (request.advertising) {
    const wire::BlockedEnvelope blocked = credit_sender::describe(peer, request);
    head.type = wire::Type::blocked_envelope;
    head.seq = peer.blocked_sends->batch_number;
    out = wire::put_head(out, head, sizeof blocked + payload);
    std::memcpy(out, &blocked, sizeof blocked);
    out += sizeof blocked;
  } else if (routed) {
    head.type = wire::Type::multicast_rts;
    out = wire::put_head(out, head, context.route_size(request) + payload);
    out = context.write_route(request, out);
  } else {
    head.type = wire::Type::rts;
    out = wire::put_head(out, head, payload);
  }
  std::byte* const rts_at = out;
  std::memcpy(out, &rts, sizeof rts);
  out += sizeof rts;
  out += data::gather(request.data, 0, rts.header, out);
  if (late != 0) async_get::register_later(*staged, request, rts_at, {out, late});
  std::memcpy(out, rkey.bytes, rkey.size);
  return out + rts.rkey;
}

}  // namespace canele::comm::rendezvous
