// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine answers to the floors below: each call of Context, and each type of chunk, goes to the room that
// handles it.
//
// Called under the engine's lock.
#include "comm/engine/connect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/link/sequencing.hpp"
#include "comm/multicast/multicast.hpp"
#include "comm/multicast/relay.hpp"
#include "comm/protocol/credit_receiver.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/announce.hpp"
#include "comm/rendezvous/buffered.hpp"
#include "comm/rendezvous/receive_rts.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {

// ---- of link/ -------------------------------------------------------------------------------------------------------

Written Engine::write_item(Peer& peer, strategies::Item& item, std::byte* out, Packet* staged) {
  return send_path::write_item(*this, peer, item, out, staged);
}

void Engine::item_left(strategies::Item& item) { send_path::item_left(*this, item); }

void Engine::bulk_left(Peer& peer, Request& request, std::size_t bytes) {
  send_path::bulk_left(*this, peer, request, bytes);
}

const char* Engine::parse_chunks(Peer& peer, std::span<const std::byte> bytes, std::size_t* done) {
  return receive_path::chunks(*this, peer, bytes, done);
}

void Engine::landing_closed(Peer& peer, std::size_t index) { rendezvous::landing_closed(*this, peer, index); }

void Engine::rail_failed(Rail& rail) { peers::rail_failed(*this, rail); }

void Engine::drop_packet(Rail& rail) { peers::drop_packet(*this, rail); }

// ---- of protocol/ ---------------------------------------------------------------------------------------------------

const char* Engine::on_chunk(Peer& peer, const wire::Chunk& chunk) {
  switch (chunk.head.type) {
    case wire::Type::eager:
    case wire::Type::eager_sync:
      return receive_path::on_eager(*this, peer, chunk.head, chunk.payload);
    case wire::Type::rts:
      return rendezvous::on_rts(*this, peer, chunk.head, chunk.payload);
    case wire::Type::cast:
      return multicast::on_cast(*this, peer, chunk.head, chunk.payload);
    case wire::Type::cts:
      return rendezvous::on_cts(*this, peer, chunk.head.tag, chunk.payload);
    case wire::Type::fin:
      return rendezvous::on_fin(*this, peer, chunk.head.tag, chunk.payload);
    case wire::Type::ack:
      return receive_path::on_ack(*this, peer, chunk.head);
    case wire::Type::session:
      return receive_path::on_session(*this, peer, chunk.head, chunk.payload);
    case wire::Type::bye:
      CANELE_MARK(peer_left);
      fail_peer(peer, CANELE_EPEER, false, "it has left the job");
      return nullptr;
    case wire::Type::seen:
      mark_dirty(peer);
      return bundle::seen(peer, chunk.head.tag);
    case wire::Type::again:
      rendezvous::on_again(*this, peer, chunk.head.tag);
      return nullptr;
    case wire::Type::rtr:
      return advert::on_rtr(*this, peer, chunk.head, chunk.payload);
    case wire::Type::share:
      return advert::on_share(*this, peer, chunk.head.tag, chunk.payload);
    case wire::Type::placed:
      return shared_copy::on_placed(*this, peer, chunk.head.tag);
    case wire::Type::credit:
      return flow_out::on_credit(*this, peer, chunk.head.tag);
    case wire::Type::withheld:
      return flow_in::on_withheld(*this, peer, chunk.head.tag != 0, chunk.head.seq) ? nullptr : try_later;
    case wire::Type::resume:
      return flow_out::on_resume(*this, peer, chunk.head, chunk.payload);
    case wire::Type::resumed:
      return flow_in::on_resumed(*this, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::offer:
      return rendezvous::on_offer(*this, peer, chunk.head, chunk.payload);
    case wire::Type::answer:
      return flow_out::on_answer(*this, peer, chunk.head.tag, chunk.head.seq);
    case wire::Type::want:
      return multicast::on_want(*this, peer, chunk.head, chunk.payload);
    case wire::Type::served:
      return multicast::on_served(*this, peer, chunk.head, chunk.payload);
    case wire::Type::elsewhere:
      return multicast::on_elsewhere(*this, peer, chunk.head, chunk.payload);
    case wire::Type::closing:
      peer.closing = true;
      return nullptr;
    case wire::Type::numbered:
      return "a packet number is not at the front of its packet";
  }
  return "a chunk is of no known type";
}

std::byte* Engine::write_rts(Peer& peer, Request& request, wire::Head head, std::byte* out, Packet* staged,
                             const Adverts::Theirs* offered) {
  return rendezvous::write_rts(*this, peer, request, head, out, staged, offered);
}

void Engine::start_transfer(Request& request, Message& message) {
  const std::uint32_t id = message.origin().cast;
  if (id != 0) request.receive.sink = multicast::find(*this, message.source, id);
  rendezvous::start(*this, request, peer(message.source), message.handle(), message.exposed(),
                    message.origin().exposed_by);
}

void Engine::receive_posted(Request& request, Peer& peer) { advert::offer(*this, request, peer); }

bool Engine::withdraw_rtr(Request& request) { return advert::withdraw(*this, request); }

void Engine::forget_rtr(Request& request) { advert::forget(*this, request); }

void Engine::buffered_send_over(Request& request) { deposit::over(*this, request); }

// ---- of a multicast -------------------------------------------------------------------------------------------------

std::size_t Engine::route_size(const Request& leg) const { return multicast::route_size(leg_of(leg)); }

std::byte* Engine::write_route(const Request& leg, std::byte* out) const {
  return multicast::write_route(*this, leg_of(leg), out);
}

bool Engine::is_read_elsewhere(const Request& request) const { return multicast::is_served(request); }

const drivers::Exposure& Engine::shelved_source(const Request& leg) const { return leg_of(leg).whole->shelved; }

void Engine::forward_paused(Request& forward) { multicast::paused(*this, forward); }

}  // namespace canele::comm
