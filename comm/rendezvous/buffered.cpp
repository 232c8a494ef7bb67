// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends.
//
// The data of the message is the copy, not the buffer that it was made of. A receiver that cannot get it is sent the
// copy.
#include "comm/rendezvous/buffered.hpp"

#include <utility>

namespace canele::comm::buffered {
namespace {

void take_away(Context& context, BufferedSend& one) {
  (one.prev != nullptr ? one.prev->next : context.large.buffered_sends) = one.next;
  if (one.next != nullptr) one.next->prev = one.prev;
  --context.large.buffered_count;
  release(*one.copy);
  delete &one;
}

}  // namespace

void enlist(Context& context, BufferedSend& one) {
  one.next = context.large.buffered_sends;
  if (one.next != nullptr) one.next->prev = &one;
  context.large.buffered_sends = &one;
  ++context.large.buffered_count;
}

void release(Copy& copy) {
  // release and acquire pair with those of the other users: the last one frees the copy after all are done with it.
  if (copy.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  copy.instance->driver->deregister(copy.rkey.handle);
  delete &copy;
}

void complete(Context& context, Request& request) {
  --context.pending_sends;
  context.trace(Event::send_done, request.rank, request.session, request.status_tag, request.data.length);
  Session& session = *request.session;
  take_away(context, static_cast<BufferedSend&>(request));
  --session.holds;
  context.sessions.release_if_unused(session);
}

void forget_all(Context& context) {
  while (context.large.buffered_sends != nullptr) take_away(context, *context.large.buffered_sends);
}

}  // namespace canele::comm::buffered
