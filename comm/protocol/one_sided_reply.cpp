// SPDX-License-Identifier: BSD-3-Clause
//
// Answers with bytes.
#include "comm/protocol/one_sided_reply.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/link/queue.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/state/payload.hpp"
#include "comm/state/request_setup.hpp"
#include "comm/wire/wire.hpp"

namespace canele::comm::one_sided {
namespace {

/// Returns the length of the next piece of an answer.
std::size_t next_piece(const Context& context, const Request& reply) CANELE_UNDER_LOCK;
std::size_t next_piece(const Context& context, const Request& reply) {
  return std::min<std::size_t>(context.one_sided.piece_limit, reply.data.length - reply.moved);
}

/// Returns the region whose memory the answer reads. nullptr: it has a copy.
Region* region_of(const Request& reply) { return reinterpret_cast<Region*>(reply.blocked_next); }

/// Sends the answer if it is short and can leave at once. Else returns false.
bool reply_fast(Context& context, Peer& peer, const ReplyName& name, const StridedMemory& memory) CANELE_UNDER_LOCK;
bool reply_fast(Context& context, Peer& peer, const ReplyName& name, const StridedMemory& memory) {
  const std::size_t length = memory.length;
  if (length > Rail::longest_inline || !link::can_send_fast(peer, wire::chunk_size(length))) return false;
  std::byte packet[link::longest_fast_chunk];
  wire::put_head(packet, {word_of(name.operation), 0, name.lane, wire::Type::got, 0}, length);
  memory.read(packet + sizeof(wire::Head));
  return link::send_fast(context, peer, {packet, wire::chunk_size(length)});
}

/// Fills the request of an answer. It has neither a region nor a copy yet.
void fill(Context& context, const Peer& peer, const ReplyName& name, PooledRequest& reply,
          const canele_data_t& data) CANELE_UNDER_LOCK;
void fill(Context& context, const Peer& peer, const ReplyName& name, PooledRequest& reply, const canele_data_t& data) {
  prepare_send(reply, *context.one_sided.session, peer.rank, 0, data, name.lane);
  reply.role = Request::InternalRole::one_sided_reply;
  reply.handle = name.operation;
  reply.blocked_next = nullptr;
  reply.before = nullptr;
}

/// Begins to send an answer.
void begin(Context& context, Peer& peer, PooledRequest& reply) CANELE_UNDER_LOCK;
void begin(Context& context, Peer& peer, PooledRequest& reply) {
  ++peer.one_sided->serving;
  ++context.pending_sends;
  enqueue_chunk(context, peer, reply, next_piece(context, reply));
}

/// Frees the request of an answer, and its copy if that is not in the request.
void free(Context& context, PooledRequest& reply, std::byte* copy) CANELE_UNDER_LOCK;
void free(Context& context, PooledRequest& reply, std::byte* copy) {
  if (copy != reply.payload) delete[] copy;
  context.request_pool.give_back(reply);
}

}  // namespace

Verdict reply_from(Context& context, Peer& peer, const ReplyName& name, Region& region, const StridedMemory& memory) {
  if (reply_fast(context, peer, name, memory)) return Verdict::ok();
  PooledRequest* const reply = context.request_pool.take();
  if (reply == nullptr) return Verdict::retry();
  static_assert(sizeof memory <= sizeof reply->payload);
  fill(context, peer, name, *reply, data_of(*new (reply->payload) StridedMemory(memory)));
  reply->blocked_next = reinterpret_cast<Request*>(&region);
  ++region.uses;
  begin(context, peer, *reply);
  return Verdict::ok();
}

ReplyCopy reserve_reply(Context& context, std::size_t length) {
  PooledRequest* const reply = context.request_pool.take();
  if (reply == nullptr) return {};
  const bool fits = length <= sizeof reply->payload;
  std::byte* const copy = fits ? reply->payload : new (std::nothrow) std::byte[length];
  if (copy != nullptr) return {reply, {copy, length}};
  context.request_pool.give_back(*reply);
  return {};
}

void reply_with(Context& context, Peer& peer, const ReplyName& name, const ReplyCopy& copy) {
  if (reply_fast(context, peer, name, {copy.bytes.data(), {}, copy.bytes.size()}))
    return free(context, *copy.request, copy.bytes.data());
  fill(context, peer, name, *copy.request, canele_data_contiguous(copy.bytes.data(), copy.bytes.size()));
  copy.request->before = copy.bytes.data();
  begin(context, peer, *copy.request);
}

std::byte* write_reply(Context& context, Request& reply, std::byte* out) {
  const std::size_t bytes = next_piece(context, reply);
  out = wire::put_head(out, {word_of(reply.handle), 0, reply.header, wire::Type::got, 0}, bytes);
  data::gather(reply.data, reply.moved, bytes, out);
  return out + bytes;
}

void on_reply_written(Context& context, Request& reply) {
  Peer& peer = context.peer(reply.rank);
  reply.moved += next_piece(context, reply);
  if (peer.disconnected() || reply.moved == reply.data.length) return drop_reply(context, reply);
  enqueue_chunk(context, peer, reply, next_piece(context, reply));
}

void drop_reply(Context& context, Request& reply) {
  if (Region* const region = region_of(reply); region != nullptr) --region->uses;
  --context.peer(reply.rank).one_sided->serving;
  --context.pending_sends;
  transition(reply, Request::Stage::idle);
  free(context, static_cast<PooledRequest&>(reply), reply.before);
}

}  // namespace canele::comm::one_sided
