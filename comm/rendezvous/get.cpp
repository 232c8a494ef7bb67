// SPDX-License-Identifier: BSD-3-Clause
//
// Get: the receiver copies the data of a large message out of its sender's memory.
//
// A receive whose data is copied by get is in no table. Only its RmaCopy ends it, also when the peer dies, because the
// copy may be under way.
#include <algorithm>
#include <cstring>

#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/staged.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::rendezvous {
namespace {

void get_chunk(ltask::Task& task);

}  // namespace

void begin_get(Context& context, Request& request, Peer& peer, const RemoteSource& source, std::uint64_t want) {
  RmaCopy& copy = new_copy(context, request, peer, source.rkey);
  copy.handle = source.handle;
  copy.want = want;
  copy.costs = source.may_stream ? &peer.rail->instance->copy_costs : nullptr;
  if (copy.driver->capabilities().rma_any_thread) {
    start_get(copy);
  } else {
    async_get::submit(*peer.rail->instance, copy);
  }
}

void begin_device_get(Context& context, Request& request, Peer& peer, const RemoteSource& source, std::uint64_t want) {
  RmaCopy& copy = new_copy(context, request, peer, source.rkey);
  copy.handle = source.handle;
  copy.want = want;
  Staged& staged = staged_of(request);
  staged.get(staged, {{copy.rkey.bytes, copy.rkey.size}, peer.rank, want, &copy.status, &copy});
}

RmaCopy& new_copy(Context& context, Request& request, Peer& peer, std::span<const std::byte> rkey) {
  RmaCopy* copy = context.large.free_copies;
  if (copy == nullptr) {
    context.large.all_copies.push_back(std::make_unique<RmaCopy>());
    copy = context.large.all_copies.back().get();
  } else {
    context.large.free_copies = copy->next_free;
  }
  copy->kind = OpKind::transfer_done;
  copy->context = &context;
  copy->request = &request;
  copy->peer = &peer;
  copy->driver = peer.rail->instance->driver.get();
  copy->offset = 0;
  copy->rkey.size = static_cast<std::uint16_t>(rkey.size());
  std::memcpy(copy->rkey.bytes, rkey.data(), rkey.size());
  copy->outstanding = 0;
  copy->status = drivers::Status::ok;
  copy->claims = {};
  copy->costs = nullptr;
  copy->copied_ns = 0;
  ++context.large.active_copies;
  return *copy;
}

void start_get(RmaCopy& copy) {
  copy.prepare(get_chunk);
  copy.context->tasks.submit(copy);
}

namespace {

/// Copies one chunk of a copy, outside the lock, on any thread that makes progress. Submits itself again until all is
/// copied.
void get_chunk(ltask::Task& task) {
  const std::size_t chunk = CANELE_BUGGIFY(short_pull) ? 4096 : 256 * 1024;  // then other tasks get a turn
  auto& copy = static_cast<RmaCopy&>(task);
  iovec pieces[64];
  std::size_t size = 0;
  drivers::Driver& driver = *copy.driver;
  const std::size_t most = std::min<std::uint64_t>({chunk, driver.capabilities().max_rma, copy.want - copy.offset});
  const int count = data::pieces(copy.request->data, copy.offset, most, pieces, 64, &size);
  if (count != 0) {
    const CopyTimer timer(copy);
    copy.status = driver.rma(copy.peer->rank, drivers::RmaOp::get, {copy.rkey.bytes, copy.rkey.size}, copy.offset,
                             pieces, count, size, &copy);
  } else {
    copy.status = drivers::Status::failed;
  }
  copy.offset += size;
  Context& context = *copy.context;
  context.watch.moved();
  if (copy.status == drivers::Status::ok && copy.offset < copy.want) {
    CANELE_COVER(get_continues);
    if (is_staged(*copy.request)) staged_of(*copy.request).arrived(staged_of(*copy.request), copy.offset);
    copy.prepare(get_chunk);
    context.tasks.submit(copy);
    return;
  }
  context.submit(copy);  // the copy may be gone now
}

}  // namespace

void free_copy(Context& context, RmaCopy& copy) {
  --context.large.active_copies;
  copy.request = nullptr;
  copy.is_get = false;
  copy.next_free = context.large.free_copies;
  context.large.free_copies = &copy;
}

}  // namespace canele::comm::rendezvous
