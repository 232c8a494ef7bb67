// SPDX-License-Identifier: BSD-3-Clause
//
// Deposits.
//
// The data of the message is the copy, not the buffer that it was made of. A receiver that cannot pull is sent the
// copy.
#include "comm/rendezvous/buffered.hpp"

#include <utility>

namespace canele::comm::deposit {
namespace {

void take_away(Context& context, Deposit& one) {
  (one.prev != nullptr ? one.prev->next : context.large.deposits) = one.next;
  if (one.next != nullptr) one.next->prev = one.prev;
  --context.large.deposit_count;
  release(*one.copy);
  delete &one;
}

}  // namespace

void enlist(Context& context, Deposit& one) {
  one.next = context.large.deposits;
  if (one.next != nullptr) one.next->prev = &one;
  context.large.deposits = &one;
  ++context.large.deposit_count;
}

void release(Copy& copy) {
  // release and acquire pair with those of the other users: the last one frees the copy after all are done with it.
  if (copy.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  copy.slot->driver->withdraw(copy.exposure.handle);
  delete &copy;
}

void over(Context& context, Request& request) {
  --context.pending_sends;
  context.trace(Event::send_done, request.rank, request.session, request.status_tag, request.data.length);
  Session& session = *request.session;
  take_away(context, static_cast<Deposit&>(request));
  --session.holds;
  context.sessions.settle(session);
}

void forget_all(Context& context) {
  while (context.large.deposits != nullptr) take_away(context, *context.large.deposits);
}

}  // namespace canele::comm::deposit
