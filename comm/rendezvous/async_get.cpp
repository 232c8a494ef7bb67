// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous get by a driver that makes system calls.
//
// A get that found its driver full is tried again at the next turn. The driver's queue is the only list of gets that
// want a piece.
#include "comm/rendezvous/async_get.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::async_get {
namespace {

using drivers::Status;
using rendezvous::RmaCopy;

constexpr int most_outstanding = 4, pieces_per_get = 16;
constexpr std::size_t piece_size = 1u << 20;

/// Issues one piece. Returns false if the driver is full.
bool issue(RmaCopy& copy) {
  iovec pieces[pieces_per_get];
  std::size_t size = 0;
  const std::size_t most =
      std::min<std::uint64_t>({piece_size, copy.driver->capabilities().max_rma, copy.want - copy.offset});
  const int count = data::pieces(copy.request->data, copy.offset, most, pieces, pieces_per_get, &size);
  Status status = Status::failed;
  if (count > 0) {
    status = copy.driver->rma(copy.peer->rank, drivers::RmaOp::get, {copy.rkey.bytes, copy.rkey.size}, copy.offset,
                              pieces, count, size, static_cast<DriverToken*>(&copy));
  }
  if (status == Status::full) {
    CANELE_COVER(async_get_found_full);
    return false;
  }
  if (status == Status::failed) copy.status = Status::failed;
  if (status == Status::pending) ++copy.outstanding;
  copy.offset += size;
  return true;
}

bool wants_more(const RmaCopy& copy) { return copy.status == Status::ok && copy.offset < copy.want; }

void push(DriverInstance& instance, RmaCopy& copy) {
  if (std::exchange(copy.queued, true)) return;
  RmaCopy* top = instance.gets.load(std::memory_order_relaxed);
  // release: pairs with the acquire in serve(), which then sees what this thread wrote to the copy.
  do {
    copy.next_free = top;
  } while (!instance.gets.compare_exchange_weak(top, &copy, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace

void register_later(Packet& packet, Request& request, std::byte* rts_at, std::span<std::byte> room) {
  DeferredRegistration late{};
  late.request = &request;
  late.rts_at = static_cast<std::size_t>(rts_at - packet.staging.data());
  late.rkey_at = static_cast<std::size_t>(room.data() - packet.staging.data());
  std::fill(room.begin(), room.end(), std::byte{0});
  std::size_t covered = 0;
  late.count =
      data::pieces(request.data, 0, request.data.length, late.pieces, DeferredRegistration::most_pieces, &covered);
  packet.late.push_back(late);
}

void register_memory(DriverInstance& instance, int rank, Packet& packet) {
  for (DeferredRegistration& late : packet.late) {
    if (std::exchange(late.done, true)) continue;  // the packet found the driver full before
    drivers::MemoryKey rkey;
    if (instance.driver->register_memory(rank, drivers::RmaOp::get, late.pieces, late.count, &rkey) != Status::ok) {
      CANELE_COVER(deferred_registration_failed);
      continue;
    }
    CANELE_COVER(deferred_registration_made);
    late.handle = rkey.handle;
    std::byte* const rts = packet.staging.data() + late.rts_at;
    rts[offsetof(wire::Rts, rkey_driver)] = std::byte{instance.driver_tag()};
    std::memcpy(packet.staging.data() + late.rkey_at, rkey.bytes, rkey.size);
  }
}

void deregister(const Peer& peer, Request& request) {
  if (request.registration == 0) return;
  CANELE_COVER(memory_deregistered);
  peer.rail->instance->deregistrations.push_back(request.registration);
  request.registration = 0;
}

void submit(DriverInstance& instance, RmaCopy& copy) {
  copy.is_get = true;
  push(instance, copy);
}

int serve(DriverInstance& instance) {
  int did = 0;
  for (const std::uint64_t handle : instance.deregistrations) {
    instance.driver->deregister(handle);
    ++did;
  }
  instance.deregistrations.clear();
  RmaCopy* full = nullptr;
  // acquire: pairs with the release in push().
  for (RmaCopy* copy = instance.gets.exchange(nullptr, std::memory_order_acquire); copy != nullptr;) {
    RmaCopy* const next = copy->next_free;
    copy->queued = false;
    bool room_left = true;
    while (room_left && wants_more(*copy) && copy->outstanding < most_outstanding) {
      room_left = issue(*copy);
      did += room_left ? 1 : 0;
    }
    if (!room_left && copy->outstanding == 0) {  // no piece_done() would push it again
      copy->next_free = full;
      full = copy;
    } else if (copy->outstanding == 0) {
      instance.context.submit(static_cast<rendezvous::TransferDoneOp&>(*copy));  // the copy may be gone now
    }
    copy = next;
  }
  while (full != nullptr) {
    RmaCopy* const next = full->next_free;
    push(instance, *full);
    full = next;
  }
  return did;
}

void piece_done(DriverInstance& instance, RmaCopy& copy, Status status) {
  assert(copy.outstanding > 0);
  --copy.outstanding;
  instance.context.watch.moved();
  if (status != Status::ok) copy.status = Status::failed;
  if (wants_more(copy) || copy.outstanding == 0) push(instance, copy);
}

void drop(Context& context, const Peer& peer, DriverInstance& instance) {
  for (const auto& copy : context.large.all_copies) {
    if (copy->peer != &peer || !copy->is_get || copy->request == nullptr || copy->driver != instance.driver.get())
      continue;
    CANELE_COVER_RARE(async_get_dropped);
    copy->status = Status::failed;
    if (std::exchange(copy->outstanding, 0) > 0) push(instance, *copy);
  }
}

}  // namespace canele::comm::async_get
