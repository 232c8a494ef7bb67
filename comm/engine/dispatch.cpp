// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine answers to the floors below: each call of Context, and each type of chunk, goes to the room that
// handles it.
//
// Called under the engine's lock.
#include "comm/engine/connect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/link/pacing.hpp"
#include "comm/link/sequencing.hpp"
#include "comm/multicast/multicast.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/one_sided_accumulate.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/one_sided_permission.hpp"
#include "comm/protocol/one_sided_target.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/announce.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/receive_rts.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

// ---- of link/ -------------------------------------------------------------------------------------------------------

namespace {

/// Hands on a chunk of a one-sided operation. Other types are not known.
Verdict on_access_chunk(Engine& engine, Peer& peer, const wire::Chunk& chunk) CANELE_UNDER_LOCK;
Verdict on_access_chunk(Engine& engine, Peer& peer, const wire::Chunk& chunk) {
  switch (chunk.head.type) {
    case wire::Type::attach:
      return one_sided::on_attach(engine, peer, chunk.head, chunk.payload);
    case wire::Type::detach:
      return one_sided::on_detach(engine, peer, chunk.head);
    case wire::Type::put:
      return one_sided::on_put(engine, peer, chunk.head, chunk.payload);
    case wire::Type::get:
      return one_sided::on_get(engine, peer, chunk.head, chunk.payload);
    case wire::Type::got:
      return one_sided::on_got(engine, peer, chunk.head, chunk.payload);
    case wire::Type::atomic:
      return one_sided::on_atomic(engine, peer, chunk.head, chunk.payload);
    case wire::Type::accumulate:
      return one_sided::on_accumulate(engine, peer, chunk.head, chunk.payload);
    case wire::Type::result:
      return one_sided::on_result(engine, peer, chunk.head, chunk.payload);
    case wire::Type::notify:
      return one_sided::on_notify(engine, peer, chunk.head, chunk.payload);
    case wire::Type::flush:
      return one_sided::on_flush(engine, peer, chunk.head, chunk.payload);
    case wire::Type::executed:
      return one_sided::on_executed(engine, peer, chunk.head);
    case wire::Type::access_failed:
      return one_sided::on_access_failed(engine, peer, chunk.head, chunk.payload);
    case wire::Type::notified:
      return one_sided::on_notified(engine, peer, chunk.head);
    case wire::Type::attached:
      return one_sided::on_attached(engine, peer, chunk.head, chunk.payload);
    default:
      return Verdict::violation("a chunk is of no known type");
  }
}

}  // namespace

Verdict Engine::on_chunk(Peer& peer, const wire::Chunk& chunk) {
  switch (chunk.head.type) {
    case wire::Type::eager:
    case wire::Type::eager_sync:
      return receive_path::on_eager(*this, peer, chunk.head, chunk.payload);
    case wire::Type::rts:
      return rendezvous::on_rts(*this, peer, chunk.head, chunk.payload);
    case wire::Type::multicast_rts:
      return multicast::on_multicast_rts(*this, peer, chunk.head, chunk.payload);
    case wire::Type::cts:
      return rendezvous::on_cts(*this, peer, Handle{chunk.head.tag}, chunk.payload);
    case wire::Type::fin:
      return rendezvous::on_fin(*this, peer, Handle{chunk.head.tag}, chunk.payload);
    case wire::Type::ack:
      return receive_path::on_ack(*this, peer, chunk.head);
    case wire::Type::session:
      return receive_path::on_session(*this, peer, chunk.head, chunk.payload);
    case wire::Type::bye:
      CANELE_COVER(peer_left);
      fail_peer(peer, CANELE_EPEER, false, "it has left the job");
      return Verdict::ok();
    case wire::Type::cumulative_ack:
      mark_backlogged(peer);
      return sequencing::on_cumulative_ack(peer, chunk.head.tag);
    case wire::Type::regrant:
      rendezvous::on_regrant(*this, peer, Handle{chunk.head.tag});
      return Verdict::ok();
    case wire::Type::transfer_failed:
      return rendezvous::on_transfer_failed(*this, peer, Handle{chunk.head.tag});
    case wire::Type::rtr:
      return rtr::on_rtr(*this, peer, chunk.head, chunk.payload);
    case wire::Type::shared_copy:
      return rtr::on_shared_copy(*this, peer, Handle{chunk.head.tag}, chunk.payload);
    case wire::Type::copy_done:
      return shared_copy::on_copy_done(*this, peer, Handle{chunk.head.tag});
    case wire::Type::credit:
      return credit_sender::on_credit(*this, peer, chunk.head.tag);
    case wire::Type::blocked:
      return credit_receiver::on_blocked(*this, peer, chunk.head.tag != 0, chunk.head.seq);
    case wire::Type::solicit:
      return credit_sender::on_solicit(*this, peer, chunk.head, chunk.payload);
    case wire::Type::solicit_done:
      return credit_receiver::on_solicit_done(*this, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::blocked_envelope:
      return rendezvous::on_blocked_envelope(*this, peer, chunk.head, chunk.payload);
    case wire::Type::blocked_reply:
      return credit_sender::on_blocked_reply(*this, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::multicast_cts:
      return multicast::on_multicast_cts(*this, peer, chunk.head, chunk.payload);
    case wire::Type::multicast_done:
      return multicast::on_multicast_done(*this, peer, chunk.head, chunk.payload);
    case wire::Type::multicast_redirect:
      return multicast::on_multicast_redirect(*this, peer, chunk.head, chunk.payload);
    case wire::Type::rail_close:
      peer.closing = true;
      return Verdict::ok();
    case wire::Type::rail_probe:
      return pacing::on_probe(*this, peer, chunk.head);
    case wire::Type::rail_echo:
      return pacing::on_echo(*this, peer, chunk.head);
    case wire::Type::rail_report:
      return pacing::on_report(*this, peer, chunk.head);
    case wire::Type::sequenced:
      return Verdict::violation("a sequence number is not at the front of its packet");
    default:
      return on_access_chunk(*this, peer, chunk);
  }
}

Written Engine::write_item(Peer& peer, strategies::Item& item, std::byte* out, Packet* staged) {
  return send_path::write_item(*this, peer, item, out, staged);
}

void Engine::item_sent(strategies::Item& item) { send_path::item_sent(*this, item); }

void Engine::bulk_sent(Peer& peer, Request& request, std::size_t bytes) {
  send_path::bulk_sent(*this, peer, request, bytes);
}

void Engine::destination_closed(Peer& peer, std::size_t index) { rendezvous::destination_closed(*this, peer, index); }

void Engine::rail_failed(Rail& rail) { peers::rail_failed(*this, rail); }

void Engine::drop_packet(Rail& rail) { peers::drop_packet(*this, rail); }

// ---- of protocol/ ---------------------------------------------------------------------------------------------------

std::byte* Engine::write_rts(Peer& peer, Request& request, const ChunkToWrite& chunk,
                             const RtrTable::RemoteRtr* remote_rtr) {
  return rendezvous::write_rts(*this, peer, request, chunk, remote_rtr);
}

void Engine::start_transfer(Request& request, Message& message) {
  const Message::Origin& origin = message.origin();
  if (origin.multicast_id != 0) request.receive.sink = multicast::find(*this, message.source, origin.multicast_id);
  rendezvous::start_transfer(*this, request, peer(message.source),
                             {origin.handle, message.rkey(), origin.rkey_driver, origin.may_stream});
}

void Engine::receive_posted(Request& request, Peer& peer) { rtr::send(*this, request, peer); }

bool Engine::withdraw_rtr(Request& request) { return rtr::withdraw(*this, request); }

void Engine::forget_rtr(Request& request) { rtr::forget(*this, request); }

void Engine::buffered_send_done(Request& request) { buffered::complete(*this, request); }

// ---- of a multicast -------------------------------------------------------------------------------------------------

std::size_t Engine::route_size(const Request& send) const { return multicast::route_size(destination_send_of(send)); }

std::byte* Engine::write_route(const Request& send, std::byte* out) const {
  return multicast::write_route(*this, destination_send_of(send), out);
}

bool Engine::is_read_elsewhere(const Request& send) const { return destination_send_of(send).parent >= 0; }

const drivers::MemoryKey& Engine::segment_key_of(const Request& send) const {
  return destination_send_of(send).multicast->segment_key;
}

void Engine::forward_paused(Request& send) { multicast::on_available_sent(*this, destination_send_of(send)); }

}  // namespace canele::comm
