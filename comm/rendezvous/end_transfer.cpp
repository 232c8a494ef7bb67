// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a large message: the receiver has its data and says so, and the sender hears of it.
#include <string>

#include "comm/link/queue.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {
void transfer_done(Context& context, RmaCopy& copy) {
  if (copy.claims) {
    shared_copy::copy_finished(context, copy);
    return;
  }
  Peer& peer = *copy.peer;
  if (peer.disconnected()) {  // even if all was copied: the peer may have given us up, and let go of its memory
                              // meanwhile
    CANELE_COVER(get_from_disconnected);
    receive_path::fail_receive(context, *copy.request, peer.error);
  } else if (copy.status == drivers::Status::ok) {
    CANELE_COVER(get_done);
    copy.note_cost();
    fin(context, peer, copy.handle, CANELE_OK);
    context.counters.add(Counter::rma_get_bytes, copy.want);
    context.trace(Event::bulk_received, peer.rank, copy.request->session, copy.request->status_tag, copy.want);
    receive_path::complete_receive(context, *copy.request, peer, copy.want);
  } else {  // the copy may be forbidden; or the peer is about to be found dead, and that ends the transfer
    CANELE_COVER(get_failed_and_streams);
    stream(context, *copy.request, peer, copy.handle, copy.want);
  }
  free_copy(context, copy);
}

void fin(Context& context, Peer& peer, Handle handle, int outcome) {
  const auto word = static_cast<std::uint32_t>(-outcome);
  link::send_control(context, peer, {.type = wire::Type::fin, .tag = word_of(handle), .payload = link::bytes_of(word)});
}

Verdict on_fin(Context& context, Peer& peer, Handle handle, std::span<const std::byte> payload) {
  std::uint32_t outcome;
  Request* request = context.sends.find(handle);
  if (!wire::take(payload, outcome)) return Verdict::violation("an end of transfer is too short");
  const bool under_way =
      request != nullptr && !request->is_blocked() && (request->moved != request->expected || peer.holds(*request));
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || !request->announced() ||
      ((under_way || is_short_of_data(*request)) && !request->needs_fin) ||
      request->role == Request::InternalRole::child_send) {
    return Verdict::violation("an end of transfer names no send that waits for one");
  }
  if (under_way) {  // the rail has not given the last of its memory back
    CANELE_COVER(fin_before_the_rail_let_go);
    const bool first = request->stage == Request::Stage::moving;  // a peer may repeat itself
    if (first) transition(*request, Request::Stage::draining);
    return Verdict::ok();
  }
  CANELE_COVER(fin_arrived);
  if (request->is_blocked()) credit_sender::taken(context, peer, *request);
  context.sends.remove(handle);
  async_get::deregister(peer, *request);
  context.finish(*request, send_path::decode_outcome(outcome));
  return Verdict::ok();
}

void fail_send(Context& context, Peer& peer, Request& request) {
  link::send_control(context, peer, {.type = wire::Type::transfer_failed, .tag = word_of(request.transfer_id)});
  context.sends.remove(request.handle);
  context.finish(request, CANELE_EDEVICE);
}

Verdict on_transfer_failed(Context& context, Peer& peer, Handle transfer_id) {
  const Request* const request = context.transfers.find(transfer_id);
  if (request == nullptr || request->receive.peer != &peer || request->receive.sink != nullptr)
    return Verdict::violation("a failed transfer has not been asked for");
  end_failed_transfer(context, peer, transfer_id);
  return Verdict::ok();
}

void end_failed_transfer(Context& context, Peer& peer, Handle transfer_id) {
  Request* const request = context.transfers.find(transfer_id);
  if (request == nullptr) return;
  if (peer.rail_group != nullptr && peer.rail_group->mark_open(transfer_id, &OpenDestination::sender_failed)) {
    CANELE_COVER_RARE(transfer_failed_while_rail_writes);
    return;
  }
  context.log(LogLevel::error, "receive from rank " + std::to_string(peer.rank) + ", tag " +
                                   std::to_string(request->status_tag) + ": the sender's device has failed");
  if (peer.rail_group != nullptr) peer.rail_group->ranges.erase(word_of(transfer_id));
  context.transfers.remove(transfer_id);
  receive_path::fail_receive(context, *request, CANELE_EDEVICE);
}

}  // namespace canele::comm::rendezvous
