// SPDX-License-Identifier: BSD-3-Clause
//
// Shared copies.
//
// An end that could not copy a chunk goes on claiming, and gives the rest back as failed. For the other end may be
// unable to copy at all. When all chunks are claimed and given back, the message is streamed from its beginning.
#include "comm/rendezvous/shared_copy.hpp"

#include <algorithm>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::shared_copy {
namespace {

using drivers::Access;
using drivers::Status;
using rendezvous::Pull;

/// Returns the size of a chunk, in bytes. It is part of the wire format: both ends count by it.
std::uint64_t chunk_of(std::uint64_t length) {
  std::uint64_t chunk = least_chunk;
  while (length > chunk * Claims::most_chunks) chunk *= 2;
  return chunk;
}

std::uint32_t chunks_of(std::uint64_t length) {
  const std::uint64_t chunk = chunk_of(length);
  return static_cast<std::uint32_t>((length + chunk - 1) / chunk);
}

std::uint64_t wanted(const Request& receive) {
  return std::min<std::uint64_t>(receive.status_length, receive.data.length);
}

/// Copies bytes [at, at + size) of the message, by as many calls as its pieces need. Returns whether all could be
/// copied.
bool copy(Pull& pull, std::uint64_t at, std::uint64_t size) {
  while (size > 0) {
    iovec pieces[64];
    std::size_t covered = 0;
    const std::uint64_t most = std::min<std::uint64_t>(size, pull.driver->capabilities().max_copy);
    const int count = data::pieces(pull.request->data, at, most, pieces, 64, &covered);
    if (count == 0) return false;
    const Status status = pull.driver->remote_copy(
        pull.peer->rank, pull.access, {pull.exposure.bytes, pull.exposure.size}, at, pieces, count, covered, nullptr);
    if (status != Status::ok) return false;
    at += covered;
    size -= covered;
  }
  return true;
}

/// Copies some chunks, outside the lock, on any thread that makes progress. Submits itself again until none is left.
void copy_chunk(ltask::Task& task) {
  auto& pull = static_cast<Pull&>(task);
  Context& context = *pull.context;
  const std::uint32_t chunks = chunks_of(pull.want);
  const Claims::Range mine =
      pull.claims.claim(pull.access == Access::get ? Claims::From::front : Claims::From::back, chunks);
  if (mine.count != 0) {
    const std::uint64_t chunk = chunk_of(pull.want);
    const std::uint64_t at = mine.first * chunk;
    const std::uint64_t size = std::min(mine.count * chunk, pull.want - at);
    if (pull.status == Status::ok && !copy(pull, at, size)) pull.status = Status::failed;
    if (pull.status == Status::ok) pull.offset += size;
    context.watch.moved();
    pull.last = pull.claims.copied(pull.status == Status::ok, mine.count, chunks);
    if (!pull.last) {
      pull.prepare(copy_chunk);
      context.tasks.submit(pull);
      return;
    }
  }
  context.submit(static_cast<rendezvous::PulledOp&>(pull));  // the pull may be gone now
}

Pull& make(Context& context, Request& request, Peer& peer, Claims claims, Access access,
           std::span<const std::byte> exposure) {
  Pull& pull = rendezvous::new_pull(context, request, peer, exposure);
  pull.claims = claims;
  pull.access = access;
  pull.own = request.handle;
  pull.last = false;
  request.copying = true;
  pull.prepare(copy_chunk);
  return pull;
}

/// Ends a receive whose last chunk is done, by this end or the other. `tell`: the sender does not know yet.
void received(Context& context, Request& request, Peer& peer, bool tell) {
  const bool well = !advert::claims_of(peer, request).any_failed();
  const std::uint64_t want = wanted(request);
  advert::forget(context, request);
  request.copying = false;  // its task may have some steps to go, without the request
  if (!well) {
    CANELE_MARK(shared_copy_failed_and_streams);
    rendezvous::stream(context, request, peer, request.bulk_key, want);
    return;
  }
  CANELE_MARK(shared_copy_received);
  context.trace(Event::bulk_received, peer.rank, request.session, request.status_tag, want);
  if (tell) rendezvous::fin(context, peer, request.bulk_key, CANELE_OK);
  receive_path::delivered(context, request, peer, want);
}

/// Handles the end of this end's task of a receive.
void receive_over(Context& context, Request& request, Peer& peer, bool last) {
  request.copying = false;
  if (peer.gone()) {
    CANELE_RARE_MARK(shared_copy_with_the_gone);
    advert::forget(context, request);
    context.finish(request, peer.error);
  } else if (last) {
    received(context, request, peer, true);
  }
}

/// Handles the end of this end's task of a send. If a chunk has failed, the receiver asks for all of the message.
void send_over(Context& context, Request& request, Peer& peer, const Pull& pull) {
  request.copying = false;
  if (!peer.gone() && !pull.last) return;
  if (!peer.gone()) {
    CANELE_MARK(sender_copied_the_last_chunk);
    link::control(context, peer, wire::Type::placed, pull.handle, 0, 0, nullptr, 0);
    if (pull.claims.any_failed()) return;
  }
  context.sends.remove(request.handle);
  context.finish(request, peer.gone() ? peer.error : CANELE_OK);
}

}  // namespace

void receive(Context& context, Request& request, Peer& peer, Claims claims, std::span<const std::byte> exposure) {
  if (exposure.empty()) return;  // only the sender can copy
  Pull& pull = make(context, request, peer, claims, Access::get, exposure);
  pull.handle = request.bulk_key;
  pull.want = wanted(request);
  context.tasks.submit(pull);
}

void send(Context& context, Request& request, Peer& peer, Claims claims, const Adverts::Theirs& offered) {
  Pull& pull = make(context, request, peer, claims, Access::put, {offered.exposure.data(), offered.exposure_size});
  pull.handle = offered.key;
  pull.want = std::min<std::uint64_t>(request.data.length, offered.length);
  context.large.deferred.push_back(&pull);
  context.departures.rouse(context.sleeper);
}

void start_deferred(Context& context) {
  for (Pull* pull : context.large.deferred) context.tasks.submit(*pull);
  context.large.deferred.clear();
}

void over(Context& context, Pull& pull) {
  const bool receives = pull.access == Access::get;
  Peer& peer = *pull.peer;
  if (receives) context.counters.add(Counter::rma_get_bytes, pull.offset);
  if (!receives) context.counters.add(Counter::rma_put_bytes, pull.offset);
  Request* request = (receives ? context.transfers : context.sends).find(pull.own);
  if (request != nullptr && request->copying) {
    receives ? receive_over(context, *request, peer, pull.last) : send_over(context, *request, peer, pull);
  }
  rendezvous::free_pull(context, pull);
}

const char* on_placed(Context& context, Peer& peer, std::uint64_t key) {
  Request* request = context.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer || request->stage != Request::Stage::moving) {
    return "an end of copying names no receive that was offered";
  }
  const Claims claims = advert::claims_of(peer, *request);
  if (!claims || !claims.all_copied(chunks_of(wanted(*request)))) {
    return "an end of copying comes before the last chunk";
  }
  received(context, *request, peer, false);
  return nullptr;
}

}  // namespace canele::comm::shared_copy
