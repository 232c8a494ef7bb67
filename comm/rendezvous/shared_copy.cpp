// SPDX-License-Identifier: BSD-3-Clause
//
// Shared copies.
//
// An end that could not copy a chunk goes on claiming, and gives the rest back as failed. For the other end may be
// unable to copy at all. When all chunks are claimed and given back, the message is streamed from its beginning.
#include "comm/rendezvous/shared_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/choose.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/state/driver_copy.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::shared_copy {

namespace {

using drivers::RmaOp;
using drivers::Status;
using rendezvous::RmaCopy;

/// Returns the size of a chunk, in bytes. It is part of the wire format: both ends count by it.
std::uint64_t chunk_of(std::uint64_t length) {
  std::uint64_t chunk = RtrTable::longest_for_one;
  while (length > chunk * ChunkClaims::most_chunks) chunk *= 2;
  return chunk;
}

std::uint32_t chunks_of(std::uint64_t length) {
  const std::uint64_t chunk = chunk_of(length);
  return static_cast<std::uint32_t>((length + chunk - 1) / chunk);
}

std::uint64_t wanted(const Request& receive) {
  return std::min<std::uint64_t>(receive.status_length, receive.data.length);
}

/// Copies bytes [at, at + size) of the message. Returns whether all could be copied.
bool copy_range(RmaCopy& copy, std::uint64_t at, std::uint64_t size) {
  const rendezvous::CopyTimer timer(copy);
  return copy_by_driver({*copy.driver, copy.peer->rank, copy.rkey}, copy.op, at, copy.request->data, at, size);
}

/// Copies some chunks, outside the lock, on any thread that makes progress. Submits itself again until none is left.
void copy_chunk(ltask::Task& task) {
  auto& copy = static_cast<RmaCopy&>(task);
  Context& context = *copy.context;
  copy.gives_way = copy.op == RmaOp::put && context.large.shared_receives.load(std::memory_order_relaxed) != 0;
  if (copy.gives_way) return context.submit(static_cast<rendezvous::TransferDoneOp&>(copy));
  const std::uint32_t chunks = chunks_of(copy.want);
  const ChunkClaims::From from = copy.op == RmaOp::get ? ChunkClaims::From::front : ChunkClaims::From::back;
  const ChunkClaims::Range mine = copy.claims.claim_chunks(from, chunks, copy.exchanges);
  if (mine.count != 0) {
    const std::uint64_t chunk = chunk_of(copy.want);
    const std::uint64_t at = mine.first * chunk;
    const std::uint64_t size = std::min(mine.count * chunk, copy.want - at);
    if (copy.status == Status::ok && !copy_range(copy, at, size)) copy.status = Status::failed;
    if (copy.status == Status::ok) copy.offset += size;
    context.watch.moved();
    copy.last = copy.claims.copied(copy.status == Status::ok, mine.count, chunks);
    if (!copy.last) {
      copy.prepare(copy_chunk);
      context.tasks.submit(copy);
      return;
    }
  }
  context.submit(static_cast<rendezvous::TransferDoneOp&>(copy));  // the copy may be gone now
}

/// What this end does of a shared copy.
struct OwnPart {
  ChunkClaims claims;
  RmaOp op;
  std::span<const std::byte> rkey;
  Handle handle;       ///< the peer's name for its end
  std::uint64_t want;  ///< bytes that both ends copy
};

RmaCopy& make(Context& context, Request& request, Peer& peer, const OwnPart& part) CANELE_UNDER_LOCK {
  RmaCopy& copy = rendezvous::new_copy(context, request, peer, part.rkey);
  copy.claims = part.claims;
  copy.op = part.op;
  copy.handle = part.handle;
  copy.want = part.want;
  copy.own = request.handle;
  if (rendezvous::measures_copies(context, peer)) copy.costs = &peer.rail->instance->copy_costs;
  copy.last = false;
  copy.exchanges = part.op == RmaOp::get && context.sends.used() != 0;
  request.copying = true;
  copy.prepare(copy_chunk);
  return copy;
}

/// Resumes copies of sends, unless this end still has receives to copy.
void resume_sends(Context& context) CANELE_UNDER_LOCK {
  if (context.large.shared_receives.load(std::memory_order_relaxed) != 0) return;
  while (context.large.paused_copies != nullptr) {
    RmaCopy& copy = *context.large.paused_copies;
    context.large.paused_copies = copy.next_free;
    copy.prepare(copy_chunk);
    context.tasks.submit(copy);
  }
}

/// Ends a receive whose last chunk is done, by this end or the other. `tell`: the sender does not know yet.
void received(Context& context, Request& request, Peer& peer, bool tell) CANELE_UNDER_LOCK {
  const bool well = !rtr::claims_of(peer, request).any_failed();
  const std::uint64_t want = wanted(request);
  rtr::forget(context, request);
  request.copying = false;  // its task may have some steps to go, without the request
  if (!well) {
    CANELE_COVER(shared_copy_failed_and_streams);
    rendezvous::stream(context, request, peer, request.transfer_id, want);
    return;
  }
  CANELE_COVER(shared_copy_received);
  context.trace(Event::bulk_received, peer.rank, request.session, request.status_tag, want);
  if (tell) rendezvous::fin(context, peer, request.transfer_id, CANELE_OK);
  receive_path::complete_receive(context, request, peer, want);
}

/// Handles the end of this end's task of a receive.
void receive_finished(Context& context, Request& request, Peer& peer, bool last) CANELE_UNDER_LOCK {
  request.copying = false;
  if (peer.disconnected()) {
    CANELE_COVER_RARE(shared_copy_with_disconnected);
    rtr::forget(context, request);
    context.finish(request, peer.error);
  } else if (last) {
    received(context, request, peer, true);
  }
}

/// Handles the end of this end's task of a send. If a chunk has failed, the receiver asks for all of the message.
void send_finished(Context& context, Request& request, Peer& peer, const RmaCopy& copy) CANELE_UNDER_LOCK {
  request.copying = false;
  if (!peer.disconnected() && !copy.last) return;
  if (!peer.disconnected()) {
    CANELE_COVER(sender_copied_the_last_chunk);
    link::send_control(context, peer, {.type = wire::Type::copy_done, .tag = word_of(copy.handle)});
    if (copy.claims.any_failed()) return;
  }
  context.sends.remove(request.handle);
  context.finish(request, peer.disconnected() ? peer.error : CANELE_OK);
}

}  // namespace

void receive(Context& context, Request& request, Peer& peer, ChunkClaims claims, std::span<const std::byte> rkey) {
  if (rkey.empty()) return;  // only the sender can copy
  context.large.shared_receives.fetch_add(1, std::memory_order_relaxed);
  context.tasks.submit(make(context, request, peer, {claims, RmaOp::get, rkey, request.transfer_id, wanted(request)}));
}

void send(Context& context, Request& request, Peer& peer, ChunkClaims claims, const RtrTable::RemoteRtr& remote_rtr) {
  const auto want = std::min<std::uint64_t>(request.data.length, remote_rtr.length);
  RmaCopy& copy = make(context, request, peer,
                       {claims, RmaOp::put, {remote_rtr.rkey.data(), remote_rtr.rkey_size}, remote_rtr.key, want});
  context.large.deferred_copies.push_back(&copy);
  context.after_unlock.wake(context.sleeper);
}

void start_deferred(Context& context) {
  for (RmaCopy* copy : context.large.deferred_copies) context.tasks.submit(*copy);
  context.large.deferred_copies.clear();
}

void copy_finished(Context& context, RmaCopy& copy) {
  const bool receives = copy.op == RmaOp::get;
  Peer& peer = *copy.peer;
  if (copy.gives_way) {
    CANELE_COVER(shared_copy_gives_way);
    copy.next_free = std::exchange(context.large.paused_copies, &copy);
    return resume_sends(context);
  }
  if (receives) context.counters.add(Counter::rma_get_bytes, copy.offset);
  copy.note_cost();
  if (!receives) context.counters.add(Counter::rma_put_bytes, copy.offset);
  Request* request = (receives ? context.transfers : context.sends).find(copy.own);
  if (request != nullptr && request->copying) {
    receives ? receive_finished(context, *request, peer, copy.last) : send_finished(context, *request, peer, copy);
  }
  rendezvous::free_copy(context, copy);
  if (!receives) return;
  context.large.shared_receives.fetch_sub(1, std::memory_order_relaxed);
  resume_sends(context);
}

Verdict on_copy_done(Context& context, Peer& peer, Handle key) {
  Request* request = context.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer || request->stage != Request::Stage::moving) {
    return Verdict::violation("an end of copying names no receive with an RTR");
  }
  const ChunkClaims claims = rtr::claims_of(peer, *request);
  if (!claims || !claims.all_copied(chunks_of(wanted(*request)))) {
    return Verdict::violation("an end of copying comes before the last chunk");
  }
  received(context, *request, peer, false);
  return Verdict::ok();
}

}  // namespace canele::comm::shared_copy
