// SPDX-License-Identifier: BSD-3-Clause
//
// Deposits.
//
// The data of the message is the copy, not the buffer that it was made of. A receiver that cannot pull is sent the
// copy.
#include "comm/rendezvous/buffered.hpp"

#include <new>
#include <utility>

#include "comm/api/api.hpp"
#include "comm/protocol/send.hpp"

namespace canele::comm::deposit {
namespace {

/// Returns whether the peer is reached by one driver only, and that driver has a shelf with room for `length` bytes.
bool reads_shelf(const Peer* peer, std::uint64_t length) {
  if (peer == nullptr || peer->state != Peer::State::up || peer->bundle != nullptr) return false;
  const DriverSlot* const slot = peer->rail->slot;
  if (slot == nullptr) return false;
  const drivers::Capabilities& can = slot->driver->capabilities();
  return can.get && can.copies_anywhere && can.shelf >= length;
}

void link(Engine& engine, Deposit& one) {
  one.next = engine.deposits;
  if (one.next != nullptr) one.next->prev = &one;
  engine.deposits = &one;
  ++engine.deposit_count;
}

void take_away(Engine& engine, Deposit& one) {
  (one.prev != nullptr ? one.prev->next : engine.deposits) = one.next;
  if (one.next != nullptr) one.next->prev = one.prev;
  --engine.deposit_count;
  release(*one.copy);
  delete &one;
}

}  // namespace

Copy* put(Engine& engine, int peer, const void* data, std::uint64_t length) {
  if (!engine.try_lock_to_post()) return nullptr;
  DriverSlot* const slot = reads_shelf(engine.peers[peer], length) ? engine.peers[peer]->rail->slot : nullptr;
  engine.unlock();
  Copy* const copy = slot == nullptr ? nullptr : new (std::nothrow) Copy;
  if (copy == nullptr) return nullptr;
  copy->slot = slot;
  copy->length = length;
  const iovec piece{const_cast<void*>(data), length};
  using drivers::Access, drivers::everybody, drivers::Status;
  if (slot->driver->expose(everybody, Access::get, &piece, 1, &copy->exposure) == Status::ok) return copy;
  delete copy;
  return nullptr;
}

void release(Copy& copy) {
  // release and acquire pair with those of the other users: the last one frees the copy after all are done with it.
  if (copy.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  copy.slot->driver->withdraw(copy.exposure.handle);
  delete &copy;
}

bool send(Engine& engine, Session& session, int peer, std::uint64_t tag, std::int32_t priority, Copy& copy) {
  if (!engine.try_lock_to_post()) return false;
  const bool reads = reads_shelf(engine.peers[peer], copy.length) && engine.peers[peer]->rail->slot == copy.slot;
  Deposit* const one = reads ? new (std::nothrow) Deposit{} : nullptr;
  if (one != nullptr) {
    const canele_data_t data = canele_data_contiguous(copy.exposure.copied, copy.length);
    api::prepare_send(*one, session, peer, tag, data, 0);
    one->part = Request::Part::deposited;
    one->rendezvous = true;
    one->item.priority = priority;
    one->copy = &copy;
    copy.users.fetch_add(1, std::memory_order_relaxed);
    link(engine, *one);
    ++session.holds;
    send_path::accept(engine, *one);
  }
  const bool look = std::exchange(engine.credit.just_withheld, false);
  engine.unlock();
  if (one != nullptr) engine.after_submit();
  if (look && callback_depth() == 0) engine.step();  // as after any send; see Engine::submit()
  return one != nullptr;
}

void over(Engine& engine, Request& request) {
  --engine.pending_sends;
  engine.trace(Event::send_done, request.rank, request.session, request.status_tag, request.data.length);
  Session& session = *request.session;
  take_away(engine, static_cast<Deposit&>(request));
  --session.holds;
  engine.sessions.settle(session);
}

void forget_all(Engine& engine) {
  while (engine.deposits != nullptr) take_away(engine, *engine.deposits);
}

}  // namespace canele::comm::deposit
