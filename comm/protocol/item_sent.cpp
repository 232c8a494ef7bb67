// SPDX-License-Identifier: BSD-3-Clause
//
// Send, step 6: an item has left. A small message is finished; a large one waits for the answer to its announcement.
// Called by link/transmit.cpp and link/sequencing.cpp, through the context.
#include <cassert>

#include "comm/link/queue.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/one_sided_reply.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/staged.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::send_path {

using strategies::Item;

namespace {

/// An item that is no envelope has left.
void other_sent(Context& context, Item& item) CANELE_UNDER_LOCK;
void other_sent(Context& context, Item& item) {
  if (item.kind == strategies::Kind::control) return context.controls.release(static_cast<Control&>(item));
  Request& request = request_of(item);
  if (request.role == Request::InternalRole::one_sided_reply) return one_sided::on_reply_written(context, request);
  one_sided::on_written(context, request);
}

}  // namespace

void item_sent(Context& context, Item& item) {
  if (item.kind != strategies::Kind::envelope) return other_sent(context, item);
  Request& request = request_of(item);
  if (request.stage == Request::Stage::advertising) {
    transition(request, Request::Stage::advertised);  // the send stays blocked until its envelope is taken
  } else if (request.rendezvous || request.synchronous) {
    transition(request, Request::Stage::moving);  // from now on the peer knows of the send, and may answer
  } else {
    context.finish(request, CANELE_OK);
  }
}

void bulk_sent(Context& context, Peer& peer, Request& request, std::size_t bytes) {
  request.moved += bytes;
  context.watch.moved();
  assert(request.moved <= request.expected);
  if (request.moved < request.expected) return;
  link::dequeue_bulk(peer, request);
  if (is_short_of_data(request) && request.stage != Request::Stage::draining) {
    CANELE_COVER(send_waits_for_device);
    fail_if_paused(peer, request);
    return;
  }
  if (request.needs_fin && request.stage != Request::Stage::draining) {  // a rail may still lose the bytes
    CANELE_COVER(stream_sent_without_fin);
    if (request.role == Request::InternalRole::child_send) context.forward_paused(request);
    return;
  }
  if (peer.holds(request)) return;  // another rail still reads its memory
  context.sends.remove(request.handle);
  context.finish(request, CANELE_OK);
}

int decode_outcome(std::uint32_t word) {
  constexpr auto no_memory = static_cast<std::uint32_t>(-CANELE_ENOMEM);
  constexpr auto let_go = static_cast<std::uint32_t>(-CANELE_ECANCELED);
  if (word == 0) return CANELE_OK;
  return word == no_memory ? CANELE_ENOMEM : word == let_go ? CANELE_ECANCELED : CANELE_EPEER;
}

}  // namespace canele::comm::send_path
