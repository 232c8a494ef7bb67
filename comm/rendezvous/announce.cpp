// SPDX-License-Identifier: BSD-3-Clause
//
// The envelope of a large message: what the receiver needs to choose how the data comes.
#include "comm/rendezvous/announce.hpp"

#include <cstring>

#include "comm/protocol/credit_sender.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/choose.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/staged.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {
namespace {

SendFacts facts_of(const Context& context, const Peer& peer, const Request& request) CANELE_UNDER_LOCK;
void describe(const Context& context, Peer& peer, Request& request, drivers::MemoryKey& rkey) CANELE_UNDER_LOCK;
void describe_on_device(const Request& request, drivers::MemoryKey& rkey);

}  // namespace

std::byte* write_rts(Context& context, Peer& peer, Request& request, const ChunkToWrite& chunk,
                     const RtrTable::RemoteRtr* remote_rtr) {
  context.trace(Event::rts_sent, peer.rank, request.session, request.status_tag, request.data.length);
  if (request.handle == Handle::none) request.handle = context.sends.add(request);
  const bool routed = request.role == Request::InternalRole::destination_send;
  const bool needs_fin = routed || (peer.rail_group != nullptr && peer.rail_group->sequenced);
  SendFacts facts = facts_of(context, peer, request);
  facts.deferred_registration = chunk.staged != nullptr && peer.rail->instance->driver->capabilities().rkey_size != 0;
  facts.needs_fin = needs_fin;
  const Scheme alone = choose_for_send(facts);  // if the receive is not known, or can no longer be claimed
  facts.remote_rtr = remote_rtr != nullptr;
  const Scheme scheme = facts.remote_rtr ? choose_for_send(facts) : alone;
  drivers::MemoryKey rkey;
  if (alone == Scheme::get) describe(context, peer, request, rkey);
  if (alone == Scheme::device_get) describe_on_device(request, rkey);
  const std::size_t late = alone == Scheme::async_get ? peer.rail->instance->driver->capabilities().rkey_size : 0;
  wire::Rts rts{};
  rts.handle = request.handle;
  rts.length = request.data.length;
  rts.header = request.header;
  rts.rkey = static_cast<std::uint16_t>(rkey.size + late);
  rts.rkey_driver = alone == Scheme::device_get ? wire::device_memory
                    : rkey.size != 0            ? peer.rail->instance->driver_tag()
                                                : 0;
  rts.may_stream = rkey.size != 0 && alone != Scheme::device_get && request.role == Request::InternalRole::none &&
                   measures_copies(context, peer);
  rts.synchronous = request.synchronous;
  rts.needs_fin = needs_fin;
  request.needs_fin = needs_fin;
  if (scheme == Scheme::receiver_initiated) {
    ChunkClaims claims(peer.rail->lines.theirs[remote_rtr->line], remote_rtr->generation);
    if (claims.acquire()) {
      CANELE_COVER(rtr_acquired);
      rts.receive = remote_rtr->key;
      shared_copy::send(context, request, peer, claims, *remote_rtr);
    }
  }
  const std::size_t payload = sizeof rts + rts.header + rts.rkey;
  wire::Head head = chunk.head;
  std::byte* out = chunk.out;
  if (request.stage == Request::Stage::advertising) {
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
  if (late != 0) async_get::register_later(*chunk.staged, request, rts_at, {out, late});
  std::memcpy(out, rkey.bytes, rkey.size);
  return out + rts.rkey;
}

namespace {

/// Gathers what choose_for_send() asks, but for the RTR. What does not count for a message is not looked up for it.
SendFacts facts_of(const Context& context, const Peer& peer, const Request& request) {
  SendFacts facts;
  facts.length = request.data.length;
  if (is_staged(request)) {
    facts.on_device = is_on_device(request);
    facts.incomplete = is_incomplete(request);
    if (facts.on_device || facts.incomplete) return facts;
  }
  facts.copied = request.role == Request::InternalRole::in_segment || request.role == Request::InternalRole::buffered;
  if (facts.copied) return facts;
  facts.read_elsewhere = request.role == Request::InternalRole::destination_send && context.is_read_elsewhere(request);
  facts.part_of_other = request.role != Request::InternalRole::none;
  const drivers::Capabilities& can = peer.rail->instance->driver->capabilities();
  facts.gets = can.get;
  facts.any_thread = can.rma_any_thread;
  facts.copy_pays = can.get && (measures_copies(context, peer) || kernel_copies(context, peer, request));
  facts.few_pieces =
      can.get && has_few_pieces(request, can.rma_any_thread ? most_pieces : DeferredRegistration::most_pieces);
  return facts;
}

/// Describes the memory of a send for a peer that reads it.
void describe(const Context& context, Peer& peer, Request& request, drivers::MemoryKey& rkey) {
  if (request.role == Request::InternalRole::in_segment) {
    rkey = context.segment_key_of(request);
  } else if (request.role == Request::InternalRole::buffered) {
    rkey = buffered::copy_of(request).rkey;
  } else if (!CANELE_BUGGIFY(not_exposed)) {
    register_memory(peer, request, rkey);
  }
}

void describe_on_device(const Request& request, drivers::MemoryKey& rkey) {
  const std::span<const std::byte> key = staged_of(request).key;
  assert(key.size() <= sizeof rkey.bytes);
  rkey.size = static_cast<std::uint16_t>(key.size());
  std::memcpy(rkey.bytes, key.data(), key.size());
}

}  // namespace

}  // namespace canele::comm::rendezvous
