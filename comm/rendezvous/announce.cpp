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
#include "ltask/mark.hpp"

namespace canele::comm::rendezvous {

std::byte* write_rts(Context& context, Peer& peer, Request& request, wire::Head head, std::byte* out, Packet* staged,
                     const Adverts::Theirs* offered) {
  context.trace(Event::rts_sent, peer.rank, request.session, request.status_tag, request.data.length);
  if (request.handle == 0) request.handle = context.sends.add(request);
  const bool routed = request.part == Request::Part::leg;
  const bool confirm = routed || (peer.bundle != nullptr && peer.bundle->numbers);
  drivers::Exposure exposure;
  if (request.part == Request::Part::shelved) {
    exposure = context.shelved_source(request);
  } else if (request.part == Request::Part::deposited) {
    exposure = deposit::copy_of(request).exposure;
  } else if (!context.is_read_elsewhere(request)) {
    expose(peer, request, exposure);
  }
  const std::size_t late = staged != nullptr && !confirm ? fetch::room(*peer.rail, request) : 0;
  wire::Rts rts{};
  rts.handle = request.handle;
  rts.length = request.data.length;
  rts.header = request.header;
  rts.exposure = static_cast<std::uint16_t>(exposure.size + late);
  rts.exposed = exposure.size != 0 ? peer.rail->slot->mark() : 0;
  rts.synchronous = request.synchronous;
  rts.confirm = confirm;
  request.confirm = confirm;
  const bool is_plain = request.part == Request::Part::none;
  if (offered != nullptr && is_plain && advert::pays(context, peer, request)) {
    Claims claims(peer.rail->lines.theirs[offered->line], offered->generation);
    if (claims.take()) {
      CANELE_MARK(offer_taken);
      rts.receive = offered->key;
      shared_copy::send(context, request, peer, claims, *offered);
    }
  }
  const std::size_t payload = sizeof rts + rts.header + rts.exposure;
  if (request.offering) {
    const wire::Offer offer = flow_out::describe(peer, request);
    head.type = wire::Type::offer;
    head.seq = peer.withheld->batch_number;
    out = wire::put_head(out, head, sizeof offer + payload);
    std::memcpy(out, &offer, sizeof offer);
    out += sizeof offer;
  } else if (routed) {
    head.type = wire::Type::cast;
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
  if (late != 0) fetch::expose_later(*staged, request, rts_at, {out, late});
  std::memcpy(out, exposure.bytes, exposure.size);
  return out + rts.exposure;
}

}  // namespace canele::comm::rendezvous
