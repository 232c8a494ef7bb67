// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends. A receiver that cannot read the copy is sent it.
#include "comm/post/buffered_send.hpp"

#include <new>
#include <utility>

#include "comm/protocol/send.hpp"
#include "comm/state/request_setup.hpp"

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

bool send(Engine& engine, Session& session, int peer, std::uint64_t tag, std::int32_t priority, Copy& copy) {
  if (!engine.try_lock_to_post()) return false;
  const bool reads = reads_shelf(engine.peers[peer], copy.length) && engine.peers[peer]->rail->slot == copy.slot;
  Deposit* const one = reads ? new (std::nothrow) Deposit{} : nullptr;
  if (one != nullptr) {
    const canele_data_t data = canele_data_contiguous(copy.exposure.copied, copy.length);
    prepare_send(*one, session, peer, tag, data, 0);
    one->part = Request::Part::deposited;
    one->rendezvous = true;
    one->item.priority = priority;
    one->copy = &copy;
    copy.users.fetch_add(1, std::memory_order_relaxed);
    enlist(engine, *one);
    ++session.holds;
    send_path::accept(engine, *one);
  }
  const bool look = std::exchange(engine.credit.just_withheld, false);
  engine.unlock();
  if (one != nullptr) engine.after_submit();
  if (look && callback_depth() == 0) engine.step();  // as after any send; see Engine::submit()
  return one != nullptr;
}

}  // namespace canele::comm::deposit
