// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous get by a driver that makes system calls.
//
// A pull that found its driver full is tried again at the next turn. The driver's queue is the only list of pulls that
// want a piece.
#include "comm/rendezvous/async_get.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::fetch {
namespace {

using drivers::Status;
using rendezvous::Pull;

constexpr int most_outstanding = 4, pieces_at_once = 16;
constexpr std::size_t piece_size = 1u << 20;

/// Issues one piece. Returns false if the driver is full.
bool issue(Pull& pull) {
  iovec pieces[pieces_at_once];
  std::size_t size = 0;
  const std::size_t most =
      std::min<std::uint64_t>({piece_size, pull.driver->capabilities().max_copy, pull.want - pull.offset});
  const int count = data::pieces(pull.request->data, pull.offset, most, pieces, pieces_at_once, &size);
  Status status = Status::failed;
  if (count > 0) {
    status = pull.driver->remote_copy(pull.peer->rank, drivers::Access::get, {pull.exposure.bytes, pull.exposure.size},
                                      pull.offset, pieces, count, size, static_cast<InFlight*>(&pull));
  }
  if (status == Status::full) {
    CANELE_MARK(fetch_found_full);
    return false;
  }
  if (status == Status::failed) pull.status = Status::failed;
  if (status == Status::pending) ++pull.outstanding;
  pull.offset += size;
  return true;
}

bool wants_more(const Pull& pull) { return pull.status == Status::ok && pull.offset < pull.want; }

void push(DriverSlot& slot, Pull& pull) {
  if (std::exchange(pull.queued, true)) return;
  Pull* top = slot.pulls.load(std::memory_order_relaxed);
  // release: pairs with the acquire in serve(), which then sees what this thread wrote to the pull.
  do {
    pull.next_free = top;
  } while (!slot.pulls.compare_exchange_weak(top, &pull, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace

std::size_t room(const Rail& rail, const Request& request) {
  const drivers::Capabilities& capabilities = rail.slot->driver->capabilities();
  if (!capabilities.get || capabilities.copies_anywhere || capabilities.exposure_size == 0) return 0;
  iovec pieces[LateExposure::most_pieces];
  std::size_t covered = 0;
  data::pieces(request.data, 0, request.data.length, pieces, LateExposure::most_pieces, &covered);
  return covered == request.data.length ? capabilities.exposure_size : 0;
}

void expose_later(Packet& packet, Request& request, std::byte* rts_at, std::span<std::byte> room) {
  LateExposure late{};
  late.request = &request;
  late.rts_at = static_cast<std::size_t>(rts_at - packet.staging.data());
  late.exposure_at = static_cast<std::size_t>(room.data() - packet.staging.data());
  std::fill(room.begin(), room.end(), std::byte{0});
  std::size_t covered = 0;
  late.count = data::pieces(request.data, 0, request.data.length, late.pieces, LateExposure::most_pieces, &covered);
  packet.late.push_back(late);
}

void expose(DriverSlot& slot, int rank, Packet& packet) {
  for (LateExposure& late : packet.late) {
    if (std::exchange(late.done, true)) continue;  // the packet found the driver full before
    drivers::Exposure exposure;
    if (slot.driver->expose(rank, drivers::Access::get, late.pieces, late.count, &exposure) != Status::ok) {
      CANELE_MARK(late_exposure_refused);
      continue;
    }
    CANELE_MARK(late_exposure_made);
    late.handle = exposure.handle;
    std::byte* const rts = packet.staging.data() + late.rts_at;
    rts[offsetof(wire::Rts, exposed)] = std::byte{slot.mark()};
    std::memcpy(packet.staging.data() + late.exposure_at, exposure.bytes, exposure.size);
  }
}

void withdraw(const Peer& peer, Request& request) {
  if (request.exposure == 0) return;
  CANELE_MARK(exposure_withdrawn);
  peer.rail->slot->withdrawals.push_back(request.exposure);
  request.exposure = 0;
}

void submit(DriverSlot& slot, Pull& pull) {
  pull.pull = true;
  push(slot, pull);
}

int serve(DriverSlot& slot) {
  int did = 0;
  for (const std::uint64_t handle : slot.withdrawals) {
    slot.driver->withdraw(handle);
    ++did;
  }
  slot.withdrawals.clear();
  Pull* full = nullptr;
  // acquire: pairs with the release in push().
  for (Pull* pull = slot.pulls.exchange(nullptr, std::memory_order_acquire); pull != nullptr;) {
    Pull* const next = pull->next_free;
    pull->queued = false;
    bool room_left = true;
    while (room_left && wants_more(*pull) && pull->outstanding < most_outstanding) {
      room_left = issue(*pull);
      did += room_left ? 1 : 0;
    }
    if (!room_left && pull->outstanding == 0) {  // no piece_done() would push it again
      pull->next_free = full;
      full = pull;
    } else if (pull->outstanding == 0) {
      slot.context.submit(static_cast<rendezvous::PulledOp&>(*pull));  // the pull may be gone now
    }
    pull = next;
  }
  while (full != nullptr) {
    Pull* const next = full->next_free;
    push(slot, *full);
    full = next;
  }
  return did;
}

void piece_done(DriverSlot& slot, Pull& pull, Status status) {
  assert(pull.outstanding > 0);
  --pull.outstanding;
  slot.context.watch.moved();
  if (status != Status::ok) pull.status = Status::failed;
  if (wants_more(pull) || pull.outstanding == 0) push(slot, pull);
}

void drop(Context& context, const Peer& peer, DriverSlot& slot) {
  for (const auto& pull : context.large.all_pulls) {
    if (pull->peer != &peer || !pull->pull || pull->request == nullptr || pull->driver != slot.driver.get()) continue;
    CANELE_RARE_MARK(fetch_dropped);
    pull->status = Status::failed;
    if (std::exchange(pull->outstanding, 0) > 0) push(slot, *pull);
  }
}

}  // namespace canele::comm::fetch
