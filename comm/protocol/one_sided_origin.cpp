// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations at their origin, in the order of the header's picture.
#include "comm/protocol/one_sided_origin.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/one_sided_chunk.hpp"
#include "comm/protocol/one_sided_permission.hpp"
#include "comm/protocol/one_sided_transfer.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::one_sided {
namespace {

bool is_flushed(const Stream& stream);
bool answer_flushes(const Stream& stream);
void note_flush(Stream& stream);
bool will_be_flushed(const Stream& stream, const Request& request);
void await_answer(Stream& stream, Request& flush) CANELE_UNDER_LOCK;
bool may_begin(const PeerAccess& access, const Stream& stream, const Request& request);
void begin(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
void begin_transfer(Context& context, Request& request) CANELE_UNDER_LOCK;
void attach(Context& context, Peer& peer, RemoteKey& key) CANELE_UNDER_LOCK;
void submit_chunk(Context& context, Peer& peer, Request& request) CANELE_UNDER_LOCK;
bool send_chunk_fast(Context& context, Peer& peer, Request& request, std::size_t payload) CANELE_UNDER_LOCK;
void begin_waiting(Context& context, Peer& peer, Stream& stream) CANELE_UNDER_LOCK;
void begin_all_waiting(Context& context, Peer& peer) CANELE_UNDER_LOCK;
void advance(Context& context, Peer& peer, Stream& stream, std::uint16_t lane) CANELE_UNDER_LOCK;
void acknowledge(Context& context, Stream& stream, std::uint16_t lane) CANELE_UNDER_LOCK;
void note_error(Context& context, Stream& stream, std::uint16_t lane, std::int32_t error) CANELE_UNDER_LOCK;
int take_error(Context& context, Stream& stream, std::uint16_t lane) CANELE_UNDER_LOCK;
void answered(Context& context, Peer& peer, Stream& stream, Request& request) CANELE_UNDER_LOCK;
void end(Context& context, Request& request, int error) CANELE_UNDER_LOCK;
void end_if_over(Context& context, Request& request) CANELE_UNDER_LOCK;
void count_begun(Stream& stream, const Request& request);
void confirm(Context& context, Stream& stream, std::uint16_t lane, std::uint64_t number) CANELE_UNDER_LOCK;
void forget(Context& context, Stream& stream, std::uint16_t lane) CANELE_UNDER_LOCK;
void never_begun(Context& context, const Request& request) CANELE_UNDER_LOCK;

/// Returns the message of a large operation that is not over. nullptr: there is none.
Transfer* transfer_of(const Request& request) {
  return operation_of(request) <= AccessKind::get ? request.transfer : nullptr;
}

PeerAccess& access_to(Peer& peer) {
  if (peer.one_sided == nullptr) peer.one_sided = std::make_unique<PeerAccess>();
  return *peer.one_sided;
}

}  // namespace

void on_posted(Context& context, Request& request) {
  ++context.pending_sends;
  ++request.session->pending;
  if (request.key != nullptr) ++request.key->operations;
  ++context.one_sided.lanes[lane_of(request)].operations;
  Peer& peer = context.peer(request.rank);
  PeerAccess& access = access_to(peer);
  Stream& stream = access.stream(lane_of(request));
  if (peer.disconnected()) {
    never_begun(context, request);
    if (operation_of(request) == AccessKind::flush) {
      take_error(context, stream, lane_of(request));
    } else if (!is_watched(request)) {
      note_error(context, stream, lane_of(request), peer.error);
    }
    return end(context, request, peer.error);
  }
  if (operation_of(request) == AccessKind::flush) {
    note_flush(stream);
    if (is_flushed(stream)) {
      never_begun(context, request);
      return end(context, request, take_error(context, stream, lane_of(request)));
    }
    if (answer_flushes(stream)) return await_answer(stream, request);
  }
  if (stream.waiting.front() != nullptr || !may_begin(access, stream, request)) {
    CANELE_COVER(one_sided_waits);
    return stream.waiting.push_back(request);
  }
  begin(context, peer, request);
}

namespace {

/// Returns the number up to which all operations are executed, as totals and answers tell.
std::uint64_t executed_by_now(const Stream& stream) { return std::max(stream.executed, stream.confirmed); }

/// Returns whether all operations of the stream are over.
bool is_flushed(const Stream& stream) {
  return executed_by_now(stream) == stream.begun && stream.waiting.front() == nullptr &&
         stream.replies.front() == nullptr;
}

/// Returns whether the answer to the last operation of the stream, or its acknowledgement, will say that all of them
/// are executed.
bool answer_flushes(const Stream& stream) {
  const Request* const last = stream.replies.back();
  const bool answered = last != nullptr && last->number == stream.begun;
  return (answered || stream.asking == stream.begun) && stream.waiting.front() == nullptr;
}

/// Notes how many operations a flush has to cover.
void note_flush(Stream& stream) {
  stream.flushed_one = stream.begun - stream.flushed_at == 1 && stream.waiting.front() == nullptr;
  stream.flushed_at = stream.begun;
}

/// Returns whether a flush will most likely follow this operation.
bool will_be_flushed(const Stream& stream, const Request& request) {
  return stream.flushed_one && request.number == stream.flushed_at + 1 && operation_of(request) != AccessKind::flush;
}

/// Ends a flush with the answer to the last operation, or its acknowledgement. It needs no packet.
void await_answer(Stream& stream, Request& flush) {
  CANELE_COVER(one_sided_flush_by_answer);
  flush.number = stream.begun;
  count_begun(stream, flush);
  flush.needs_fin = true;
  transition(flush, Request::Stage::moving);
  stream.unacknowledged.push_back(flush);
}

bool writes(const Request& request) {
  const AccessKind operation = operation_of(request);
  return operation == AccessKind::put || operation == AccessKind::atomic || operation == AccessKind::accumulate;
}

/// Returns whether nothing holds the operation back: a large put, an earlier get that may still read what this one
/// writes, or a limit towards the target.
bool may_begin(const PeerAccess& access, const Stream& stream, const Request& request) {
  if (stream.large_put != nullptr || (stream.gets != 0 && writes(request))) return false;
  if (notifies(request) && !access.may_notify()) return false;
  if (!is_answered(request) || access.replies == 0) return true;
  return access.replies < most_replies && access.reply_bytes + length_of(request) <= most_reply_bytes;
}

void begin(Context& context, Peer& peer, Request& request) {
  PeerAccess& access = *peer.one_sided;
  Stream& stream = access.stream(lane_of(request));
  if (request.key != nullptr && request.key->index == 0) attach(context, peer, *request.key);
  request.number = ++stream.begun;
  context.counters.add(Counter::accesses_sent);
  count_begun(stream, request);
  if (notifies(request)) ++access.notifications;
  const bool large = is_large(context, request), large_put = large && !is_get(request);
  if (is_answered(request)) {
    ++access.replies;
    access.reply_bytes += length_of(request);
    request.handle = context.one_sided.replies.add(request);
    stream.gets += is_get(request);
    stream.replies.push_back(request);
  } else if (is_watched(request) || large_put) {
    stream.unacknowledged.push_back(request);
  }
  request.needs_fin = is_answered(request) || is_watched(request) || large_put;
  if (!request.needs_fin && will_be_flushed(stream, request)) stream.asking = request.number;
  if (operation_of(request) == AccessKind::flush) stream.flushed_at = request.number;
  if (large_put) stream.large_put = &request;
  submit_chunk(context, peer, request);  // the operation may be over now, unless it is large
  if (large) begin_transfer(context, request);
}

/// Posts the message of a large operation.
void begin_transfer(Context& context, Request& request) {
  Transfer& transfer = *request.transfer;
  transfer.operation = &request;
  const TransferName name{request.rank, lane_of(request), request.number, is_get(request)};
  if (name.get) {
    CANELE_COVER(one_sided_large_get);
    receive(context, transfer, name, request.data);
  } else {
    CANELE_COVER(one_sided_large_put);
    send(context, transfer, name, request.data, request.item.priority);
  }
}

/// Tells the target by which index this origin names the region.
void attach(Context& context, Peer& peer, RemoteKey& key) {
  PeerAccess& access = *peer.one_sided;
  if (access.free_indexes.empty()) {
    key.index = access.next_index++;
  } else {
    key.index = access.free_indexes.back();
    access.free_indexes.pop_back();
  }
  if (access.keys.size() <= key.index) access.keys.resize(key.index + std::size_t{1});
  access.keys[key.index] = &key;
  key.attach_number = ++access.attaches;
  link::send_control(
      context, peer,
      {.type = wire::Type::attach, .tag = word_of(key.region), .seq = key.index, .payload = link::bytes_of(key.nonce)});
}

/// Sends the chunk of the operation, or queues it.
void submit_chunk(Context& context, Peer& peer, Request& request) {
  const std::size_t payload = payload_size(context, request);
  if (!send_chunk_fast(context, peer, request, payload)) enqueue_chunk(context, peer, request, payload);
}

/// Sends the chunk of the operation at once, if it can leave. The operation may be over then. Else returns false.
bool send_chunk_fast(Context& context, Peer& peer, Request& request, std::size_t payload) {
  if (!link::can_send_fast(peer, wire::chunk_size(payload))) return false;
  std::byte packet[link::longest_fast_chunk];
  const std::byte* const end = write(context, request, packet);
  if (!link::send_fast(context, peer, {packet, static_cast<std::size_t>(end - packet)})) return false;
  on_written(context, request);
  return true;
}

}  // namespace

void on_written(Context& context, Request& request) {
  Peer& peer = context.peer(request.rank);
  if (peer.disconnected()) return drop(context, peer, request);
  transition(request, Request::Stage::moving);
  end_if_over(context, request);
}

namespace {

/// Begins the operations of a stream that waited, as long as nothing holds them back.
void begin_waiting(Context& context, Peer& peer, Stream& stream) {
  while (Request* const request = stream.waiting.front()) {
    if (!may_begin(*peer.one_sided, stream, *request)) return;
    stream.waiting.remove(*request);
    begin(context, peer, *request);
  }
}

/// Called when a window has opened.
void begin_all_waiting(Context& context, Peer& peer) {
  for (Stream& stream : peer.one_sided->streams) begin_waiting(context, peer, stream);
}

}  // namespace

Verdict on_executed(Context& context, Peer& peer, const wire::Head& head) {
  if (peer.one_sided == nullptr || head.session >= peer.one_sided->streams.size())
    return Verdict::violation("it acknowledges operations of a lane that this rank has not used");
  Stream& stream = peer.one_sided->streams[head.session];
  if (head.tag < stream.executed || head.tag > stream.begun)
    return Verdict::violation("it acknowledges operations that this rank has not sent");
  stream.executed = head.tag;
  advance(context, peer, stream, head.session);
  return Verdict::ok();
}

namespace {

/// Handles the total that the target has told. A large put is over when its message is, too.
void advance(Context& context, Peer& peer, Stream& stream, std::uint16_t lane) {
  const Request* const put = stream.large_put;
  const bool sending = put != nullptr && transfer_of(*put) != nullptr;
  confirm(context, stream, lane, sending ? std::min(stream.executed, put->number - 1) : stream.executed);
  acknowledge(context, stream, lane);
  if (put != nullptr && stream.large_put == nullptr) begin_waiting(context, peer, stream);
}

/// Ends the operations that the target has executed. A flush ends only after the answers to what was before it.
void acknowledge(Context& context, Stream& stream, std::uint16_t lane) {
  while (Request* const request = stream.unacknowledged.front()) {
    if (request->number > executed_by_now(stream) || transfer_of(*request) != nullptr) return;
    const bool flush = operation_of(*request) == AccessKind::flush;
    const Request* const reply = stream.replies.front();
    if (flush && reply != nullptr && reply->number <= request->number) return;
    stream.unacknowledged.remove(*request);
    const int error = flush ? take_error(context, stream, lane) : CANELE_OK;
    if (request->status_error == CANELE_OK) request->status_error = static_cast<std::int16_t>(error);
    request->needs_fin = false;
    if (stream.large_put == request) stream.large_put = nullptr;
    end_if_over(context, *request);
  }
}

Request* find_reply(Context& context, const Peer& peer, Handle handle) CANELE_UNDER_LOCK;
Request* find_reply(Context& context, const Peer& peer, Handle handle) {
  Request* const request = context.one_sided.replies.find(handle);
  return request != nullptr && request->rank == peer.rank ? request : nullptr;
}

/// Returns how many bytes of the answer have come.
std::uint64_t& received_of(Request& request) { return is_get(request) ? request.moved : request.immediate; }

}  // namespace

Verdict on_got(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  Request* const request = find_reply(context, peer, Handle{head.tag});
  if (request == nullptr || operation_of(*request) == AccessKind::atomic)
    return Verdict::violation("it answers an operation that this rank has not made");
  std::uint64_t& received = received_of(*request);
  const std::uint64_t left = length_of(*request) - received;
  if (payload.size() > left || (payload.empty() && left != 0))
    return Verdict::violation("its answer has another length than the operation");
  if (is_get(*request)) {
    data::scatter(request->data, received, payload.data(), payload.size());
  } else if (!payload.empty()) {
    std::memcpy(request->before + received, payload.data(), payload.size());
  }
  received += payload.size();
  if (payload.size() == left) answered(context, peer, peer.one_sided->stream(lane_of(*request)), *request);
  return Verdict::ok();
}

Verdict on_result(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  Request* const request = find_reply(context, peer, Handle{head.tag});
  std::uint64_t value = 0;
  if (request == nullptr || operation_of(*request) != AccessKind::atomic || !wire::take(payload, value))
    return Verdict::violation("it answers an atomic operation that this rank has not made");
  std::memcpy(request->data.base, &value, request->data.length);
  answered(context, peer, peer.one_sided->stream(lane_of(*request)), *request);
  return Verdict::ok();
}

namespace {

/// No answer is awaited any more.
void remove_reply(Context& context, Stream& stream, Request& request) CANELE_UNDER_LOCK;
void remove_reply(Context& context, Stream& stream, Request& request) {
  context.one_sided.replies.remove(request.handle);
  request.handle = Handle::none;
  stream.gets -= is_get(request);
  stream.replies.remove(request);
}

/// The answer of an operation is complete.
void answered(Context& context, Peer& peer, Stream& stream, Request& request) {
  PeerAccess& access = *peer.one_sided;
  --access.replies;
  access.reply_bytes -= length_of(request);
  remove_reply(context, stream, request);
  request.needs_fin = false;
  const std::uint16_t lane = lane_of(request);
  confirm(context, stream, lane, request.number);
  end_if_over(context, request);
  acknowledge(context, stream, lane);
  begin_all_waiting(context, peer);
}

Request* find_number(const RequestList& list, std::uint64_t number) {
  Request* request = list.front();
  while (request != nullptr && request->number < number) request = request->blocked_next;
  return request != nullptr && request->number == number ? request : nullptr;
}

/// Keeps the error of an operation without completion for the next flush.
void note_error(Context& context, Stream& stream, std::uint16_t lane, std::int32_t error) {
  if (stream.error != CANELE_OK) return;
  stream.error = error;
  context.one_sided.lanes[lane].all.fetch_add(1, std::memory_order_relaxed);  // until a flush has told it
}

bool is_access_error(std::int32_t error) {
  return error == CANELE_EACCESS || error == CANELE_EREVOKED || error == CANELE_ENOMEM;
}

}  // namespace

Verdict on_access_failed(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  std::int32_t error = 0;
  if (!wire::take(payload, error) || !is_access_error(error) || peer.one_sided == nullptr ||
      head.session >= peer.one_sided->streams.size() || head.tag == 0 ||
      head.tag > peer.one_sided->streams[head.session].begun) {
    return Verdict::violation("it rejects an operation that this rank has not sent");
  }
  Stream& stream = peer.one_sided->streams[head.session];
  if (Request* const reply = find_number(stream.replies, head.tag); reply != nullptr) {
    reply->status_error = static_cast<std::int16_t>(error);
    if (!is_watched(*reply)) note_error(context, stream, head.session, error);
    if (Transfer* const transfer = transfer_of(*reply); transfer != nullptr) {
      CANELE_COVER(one_sided_large_get_rejected);
      if (stop_receiving(context, *transfer)) return Verdict::ok();  // on_transferred() ends the get
      return Verdict::violation("it rejects a get that it has answered");
    }
    answered(context, peer, stream, *reply);
  } else if (Request* const request = find_number(stream.unacknowledged, head.tag);
             request != nullptr && is_watched(*request)) {
    request->status_error = static_cast<std::int16_t>(error);
  } else {
    note_error(context, stream, head.session, error);
  }
  return Verdict::ok();
}

Verdict on_notified(Context& context, Peer& peer, const wire::Head& head) {
  PeerAccess* const access = peer.one_sided.get();
  if (access == nullptr || head.tag < access->notifications_taken || head.tag > access->notifications)
    return Verdict::violation("its program has taken notifications that this rank has not sent");
  access->notifications_taken = head.tag;
  begin_all_waiting(context, peer);
  return Verdict::ok();
}

namespace {

bool has_effect(const Request& request) {
  return operation_of(request) != AccessKind::notify && operation_of(request) != AccessKind::flush;
}

void count_begun(Stream& stream, const Request& request) {
  stream.all = {stream.all.count + 1, request.number};
  if (has_effect(request)) stream.effects = {stream.effects.count + 1, request.number};
}

/// All operations of the stream up to `number` are executed. Releases what their memory got, or gave: a thread that
/// then accesses mapped memory reads the lane's counts with acquire (post/mapped_access.hpp). While answers are to
/// come, the lane is not flushed, even if all is executed.
void confirm(Context& context, Stream& stream, std::uint16_t lane, std::uint64_t number) {
  stream.confirmed = std::max(stream.confirmed, number);
  if (stream.gets != 0) return;
  Lane& of = context.one_sided.lanes[lane];
  if (stream.effects.count != 0 && stream.effects.last <= stream.confirmed)
    of.effects.fetch_sub(std::exchange(stream.effects.count, 0), std::memory_order_release);
  if (stream.all.count != 0 && stream.all.last <= stream.confirmed && stream.replies.front() == nullptr)
    of.all.fetch_sub(std::exchange(stream.all.count, 0), std::memory_order_release);
}

/// The target is lost: what was begun is not waited for.
void forget(Context& context, Stream& stream, std::uint16_t lane) {
  Lane& of = context.one_sided.lanes[lane];
  of.effects.fetch_sub(std::exchange(stream.effects.count, 0), std::memory_order_release);
  of.all.fetch_sub(std::exchange(stream.all.count, 0), std::memory_order_release);
}

void never_begun(Context& context, const Request& request) {
  Lane& of = context.one_sided.lanes[lane_of(request)];
  of.all.fetch_sub(1, std::memory_order_release);
  if (has_effect(request)) of.effects.fetch_sub(1, std::memory_order_release);
}

/// Returns the first error since the last flush, which a flush now tells.
int take_error(Context& context, Stream& stream, std::uint16_t lane) {
  if (stream.error != CANELE_OK) context.one_sided.lanes[lane].all.fetch_sub(1, std::memory_order_relaxed);
  return std::exchange(stream.error, CANELE_OK);
}

/// Ends an operation that is in no list, if it is in no packet and has no message.
void end_if_over(Context& context, Request& request) {
  if (request.stage == Request::Stage::moving && !request.needs_fin && transfer_of(request) == nullptr)
    end(context, request, request.status_error);
}

/// Ends an operation that is in no list and in no packet. Its message, if it has one, was not posted.
void end(Context& context, Request& request, int error) {
  delete transfer_of(request);
  if (request.key != nullptr) --request.key->operations;
  --context.one_sided.lanes[lane_of(request)].operations;
  const bool watched = is_watched(request);
  context.finish(request, error);  // a request of the program may be gone now
  if (!watched) context.request_pool.give_back(static_cast<PooledRequest&>(request));
}

/// Takes the operation out of the list that it is in after its beginning.
void unlist(Context& context, Stream& stream, Request& request) CANELE_UNDER_LOCK;
void unlist(Context& context, Stream& stream, Request& request) {
  if (!request.needs_fin) return;
  if (is_answered(request)) return remove_reply(context, stream, request);
  stream.unacknowledged.remove(request);
  if (stream.large_put == &request) stream.large_put = nullptr;
}

}  // namespace

void drop(Context& context, Peer& peer, Request& request) {
  unlist(context, peer.one_sided->stream(lane_of(request)), request);
  request.needs_fin = false;
  request.status_error = static_cast<std::int16_t>(peer.error);
  if (request.stage != Request::Stage::moving) transition(request, Request::Stage::moving);
  end_if_over(context, request);  // else on_transferred() does: the message may still use the memory
}

void on_transferred(Context& context, Transfer& transfer) {
  Request& request = *transfer.operation;
  Peer& peer = context.peer(request.rank);
  const Request& message = transfer.message;
  const int error = message.status_error;
  const bool is_short = error == CANELE_OK && message.status_length != request.data.length;
  request.transfer = nullptr;
  context.one_sided.transfers.end(transfer);
  if (request.status_error == CANELE_OK && is_watched(request)) request.status_error = static_cast<std::int16_t>(error);
  if (!request.needs_fin || peer.disconnected()) return end_if_over(context, request);  // dropped meanwhile
  if (is_short) return context.fail_peer(peer, CANELE_EPROTOCOL, true, "it answers a get with too few bytes");
  Stream& stream = peer.one_sided->stream(lane_of(request));
  if (is_get(request)) return answered(context, peer, stream, request);
  advance(context, peer, stream, lane_of(request));
}

void on_disconnected(Context& context, Peer& peer) {
  for (RemoteKey* const key : context.one_sided.mapped) {
    if (key->rank == peer.rank)
      key->mapped.store(nullptr, std::memory_order_relaxed);  // operations now end with an error
  }
  end_direct_accesses(context, peer);
  if (peer.one_sided == nullptr) return;
  std::uint16_t lane = 0;
  for (Stream& stream : peer.one_sided->streams) {
    if (stream.all.count != 0 || stream.waiting.front() != nullptr) note_error(context, stream, lane, peer.error);
    forget(context, stream, lane++);
    while (Request* const request = stream.waiting.front()) {
      stream.waiting.remove(*request);
      never_begun(context, *request);
      end(context, *request, peer.error);
    }
    for (RequestList* const list : {&stream.unacknowledged, &stream.replies}) {
      for (Request* request = list->front(); request != nullptr;) {
        Request* const next = request->blocked_next;
        if (request->stage == Request::Stage::moving) drop(context, peer, *request);  // else a driver has its packet
        request = next;
      }
    }
  }
}

void forget_errors(Context& context, std::uint16_t lane) {
  for (const auto& peer : context.active_peers) {
    if (peer->one_sided != nullptr && lane < peer->one_sided->streams.size())
      take_error(context, peer->one_sided->streams[lane], lane);
  }
}

void detach(Context& context, RemoteKey& key) {
  assert(key.operations == 0);
  std::erase(context.one_sided.mapped, &key);
  Peer* const peer = context.peers[key.rank];
  const std::uint32_t index = std::exchange(key.index, 0);
  if (index == 0 || peer == nullptr) return;
  peer->one_sided->keys[index] = nullptr;
  if (peer->disconnected()) return;
  link::send_control(context, *peer, {.type = wire::Type::detach, .seq = index});
  peer->one_sided->free_indexes.push_back(index);
}

void enqueue_chunk(Context& context, Peer& peer, Request& request, std::size_t payload) {
  const std::int32_t priority = request.item.priority;
  request.item = strategies::Item{};
  request.item.kind = strategies::Kind::access;
  request.item.priority = priority;
  request.item.flow_session = request.session->number;
  request.item.flow_tag = lane_of(request);
  request.item.size = static_cast<std::uint32_t>(wire::chunk_size(payload));
  link::enqueue(context, peer, request.item);
}

void RequestList::push_back(Request& request) {
  request.blocked_next = nullptr;
  request.blocked_prev = last_;
  (last_ != nullptr ? last_->blocked_next : first_) = &request;
  last_ = &request;
}

void RequestList::remove(Request& request) {
  (request.blocked_prev != nullptr ? request.blocked_prev->blocked_next : first_) = request.blocked_next;
  (request.blocked_next != nullptr ? request.blocked_next->blocked_prev : last_) = request.blocked_prev;
}

}  // namespace canele::comm::one_sided
