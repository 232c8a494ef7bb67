// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends. A receiver that cannot read the copy is sent it.
#include "comm/post/buffered_send.hpp"

#include <new>
#include <utility>

#include "comm/protocol/send.hpp"
#include "comm/state/request_setup.hpp"

namespace canele::comm::buffered {
namespace {

/// Returns whether the peer is reached by one driver only, and that driver has a broadcast segment with room for
/// `length` bytes.
bool reads_segment(const Peer* peer, std::uint64_t length) {
  if (peer == nullptr || peer->state != Peer::State::up || peer->rail_group != nullptr) return false;
  const DriverInstance* const instance = peer->rail->instance;
  if (instance == nullptr) return false;
  const drivers::Capabilities& can = instance->driver->capabilities();
  return can.get && can.rma_any_thread && can.broadcast_segment >= length;
}

}  // namespace

Copy* put(Engine& engine, int peer, const void* data, std::uint64_t length) {
  if (!engine.try_lock_to_post()) return nullptr;
  DriverInstance* const instance =
      reads_segment(engine.peers[peer], length) ? engine.peers[peer]->rail->instance : nullptr;
  engine.unlock();
  Copy* const copy = instance == nullptr ? nullptr : new (std::nothrow) Copy;
  if (copy == nullptr) return nullptr;
  copy->instance = instance;
  copy->length = length;
  const iovec piece{const_cast<void*>(data), length};
  using drivers::RmaOp, drivers::all_peers, drivers::Status;
  if (instance->driver->register_memory(all_peers, RmaOp::get, &piece, 1, &copy->rkey) == Status::ok) return copy;
  delete copy;
  return nullptr;
}

bool send(Engine& engine, Session& session, int peer, std::uint64_t tag, std::int32_t priority, Copy& copy) {
  if (!engine.try_lock_to_post()) return false;
  const bool reads =
      reads_segment(engine.peers[peer], copy.length) && engine.peers[peer]->rail->instance == copy.instance;
  BufferedSend* const one = reads ? new (std::nothrow) BufferedSend{} : nullptr;
  if (one != nullptr) {
    const canele_data_t data = canele_data_contiguous(copy.rkey.copied, copy.length);
    prepare_send(*one, session, peer, tag, data, 0);
    one->role = Request::InternalRole::buffered;
    one->rendezvous = true;
    one->item.priority = priority;
    one->copy = &copy;
    copy.users.fetch_add(1, std::memory_order_relaxed);
    enlist(engine, *one);
    ++session.holds;
    send_path::on_send_posted(engine, *one);
  }
  const bool look = std::exchange(engine.credit.just_blocked, false);
  engine.unlock();
  if (one != nullptr) engine.after_submit();
  if (look && callback_depth() == 0) engine.step();  // as after any send; see Engine::submit()
  return one != nullptr;
}

}  // namespace canele::comm::buffered
